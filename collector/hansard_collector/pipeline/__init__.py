"""The ingest pipeline: a bounded queue, decoding, and the one thread that writes."""
