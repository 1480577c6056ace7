"""Compilations of contexts, with their receipts."""
