"""Token counts: of texts, by tokenizer, and of whole requests."""
