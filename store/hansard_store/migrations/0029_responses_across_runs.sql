-- Calls of one response id, in one run and across runs: a call that two traces report is counted once.
DROP INDEX call_response;
CREATE INDEX call_response ON call (response_id, run) WHERE response_id IS NOT NULL;
