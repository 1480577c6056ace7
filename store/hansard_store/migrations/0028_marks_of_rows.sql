-- The last mark of a row: each change of a row is held against it.
CREATE INDEX seal_due_row ON seal_due (table_name, row_key, id);
