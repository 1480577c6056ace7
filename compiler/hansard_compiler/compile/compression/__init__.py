"""Shortening what does not fit whole: which items may be, to what, and how."""

from hansard_compiler.compile.compression.eligible import may_compress
from hansard_compiler.compile.compression.extract import Extract
from hansard_compiler.compile.compression.shortening import Shortened, Shortener

__all__ = ["Extract", "Shortened", "Shortener", "may_compress"]
