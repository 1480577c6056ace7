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


class BodyTooDense(PayloadTooLargeError):
    """A body of JSON that would take too much memory once it is parsed (HTTP 413)."""

    def __init__(self, limit_bytes: int) -> None:
        HansardError.__init__(
            self, f"the body holds more values than fit into {limit_bytes:,} bytes of memory"
        )
        self.limit_bytes = limit_bytes


class BodiesInMemory(HansardError):
    """Larger bodies of other requests take the memory there is for them (HTTP 503)."""

    code = "busy"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"large bodies of other requests take the {limit_bytes:,} bytes that there are for "
            "them; send this again"
        )
        self.limit_bytes = limit_bytes


class EncodedPayloadError(HansardError):
    """A compressed body: its digest is of other bytes than those sent (HTTP 415)."""

    code = "unsupported_encoding"

    def __init__(self) -> None:
        super().__init__("a payload is sent as it is, without Content-Encoding")


class NotificationsOff(HansardError):
    """No notification is sent: no webhook is set, or `outbound` is off (HTTP 409)."""

    code = "notifications_off"
