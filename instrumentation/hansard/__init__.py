"""Hansard: the official record of what your agents saw, decided and did.

This is the package a program imports. It never imports the server.
"""

from __future__ import annotations

__version__ = "0.1.0"

from hansard.decorators import agent, tool, trace
from hansard.handle import SpanHandle, span
from hansard.setup import flush, init, shutdown
from hansard_compiler.retention import RetentionMode

__all__ = [
    "RetentionMode",
    "SpanHandle",
    "__version__",
    "agent",
    "flush",
    "init",
    "shutdown",
    "span",
    "tool",
    "trace",
]
