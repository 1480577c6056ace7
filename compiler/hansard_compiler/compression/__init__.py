"""Shortening what does not fit whole: which items may be, to what, and how."""

from hansard_compiler.compression.eligible import may_compress
from hansard_compiler.compression.extract import Extract
from hansard_compiler.compression.shortening import Shortened, Shortener

__all__ = ["Extract", "Shortened", "Shortener", "may_compress"]
