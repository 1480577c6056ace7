"""Content stored once: large values, texts and payloads."""
