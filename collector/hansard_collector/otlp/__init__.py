"""OTLP: messages, both encodings, and what is refused or repaired of them."""
