"""Hansard: the official record of what your agents saw, decided and did.

This is the package a program imports. It never imports the server.
"""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["__version__"]
