"""Checks of `hansard verify`: rows, records, seals and files against one another."""
