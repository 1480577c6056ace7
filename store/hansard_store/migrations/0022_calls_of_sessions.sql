-- Log records of model calls by their session and time: which of them a span that comes is about.
CREATE INDEX session_log_call ON session_log (session, time_ns) WHERE kind = 'llm';
