"""Redaction: what is cut out of texts, telemetry and payloads before they are stored."""
