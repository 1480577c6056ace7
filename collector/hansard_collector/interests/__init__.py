"""Interests: topics that recent memory is about, each with the entries that support it.

Entries are read by `entries`, topics found by an extractor (`phrases`, or a model), checked against
their entries by `support`, and written by `finder` where memory has none like them.
"""
