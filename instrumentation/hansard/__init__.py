"""Hansard: the official record of what your agents saw, decided and did.

This is the package a program imports. It never imports the server.
"""

from __future__ import annotations

__version__ = "0.1.0"

from hansard.setup import flush, init, shutdown
from hansard_compiler.retention import RetentionMode

__all__ = ["RetentionMode", "__version__", "flush", "init", "shutdown"]
