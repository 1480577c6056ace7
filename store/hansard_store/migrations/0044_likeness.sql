-- What a step does, as a number: steps of one role, name, model and arguments have the same one, so
-- that a loop is found without reading a name. The lowest bit is 1 where arguments are part of it.
-- NULL: made before this column; `hansard rebuild` fills it in.
ALTER TABLE span ADD COLUMN likeness INTEGER; -- what it does, as a number: equal for equal steps
