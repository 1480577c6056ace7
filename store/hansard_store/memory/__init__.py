"""Memory records: versions, authorization, retrieval and the log of accesses."""
