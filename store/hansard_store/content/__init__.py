"""Large values, texts and payloads, each stored once under its digest."""
