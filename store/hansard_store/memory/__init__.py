"""Memory records: versions, authorization, retrieval, retention and access log."""
