"""The demo's third chapter: a claim against the record, its correction, and who reads both."""
