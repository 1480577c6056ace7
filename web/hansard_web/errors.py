"""Errors of the web floor: those that no floor below can know.

How an error becomes an answer is in `problems.py`.
"""

from __future__ import annotations

from hansard_compiler.errors import HansardError


class PayloadTooLargeError(HansardError):
    """A body over the limit (HTTP 413)."""

    code = "too_large"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"a payload has at most {limit_bytes:,} bytes")
        self.limit_bytes = limit_bytes


class EncodedPayloadError(HansardError):
    """A compressed body: its digest is of other bytes than those sent (HTTP 415)."""

    code = "unsupported_encoding"

    def __init__(self) -> None:
        super().__init__("a payload is sent as it is, without Content-Encoding")
