-- The audit log costs a tool that reads less: each index is a page more in each of its two commits.

-- Nearly all events are calls and results of tools. Those are found by walking back from the newest,
-- as those of an agent or a tool have been; this index holds the others (events.py).
DROP INDEX event_type;
CREATE INDEX event_type ON event (type, seq) WHERE type NOT IN ('tool.called', 'tool.returned');

-- What a tool did has the tool's name as its action too, and is found by that.
DROP INDEX event_who;
CREATE INDEX event_who_else ON event (who, seq)
  WHERE who <> '' AND NOT (actor = 'tool' AND who = action);
