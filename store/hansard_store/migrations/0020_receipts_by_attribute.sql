-- Receipts are found by the attributes of their compile's span (receipts.py). This table said the same
-- again: a page for each of a dozen values of every compile.
DROP TABLE receipt_facet;
