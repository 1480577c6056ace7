-- Approvals that need more than one person (n of m). Columns that are added: no table is rewritten.

ALTER TABLE approval ADD COLUMN approvals_required INTEGER NOT NULL DEFAULT 1; -- of distinct names
ALTER TABLE approval ADD COLUMN approved_by TEXT; -- JSON: who approved this draft; NULL where one is enough
