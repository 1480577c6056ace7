"""Detector of repeated failures: read-only rules over the record."""
