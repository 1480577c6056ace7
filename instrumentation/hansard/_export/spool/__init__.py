"""The spool: batches on disk until the collector has them."""
