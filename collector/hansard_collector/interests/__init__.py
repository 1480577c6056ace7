"""Interests: topics that recent memory is about, each with the entries that support it.

Topics are found by an extractor (`phrases`, or a model). `finder` reads the entries, checks topics
against them, and writes those that memory has none like.
"""
