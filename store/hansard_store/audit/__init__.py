"""Audit log: event types, hash chain, anchors, seals and checks of the schema."""
