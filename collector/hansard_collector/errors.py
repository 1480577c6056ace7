"""Errors of the collector's floor: permanent against retryable is a type.

IngestError
├── MalformedRequest     undecodable: the sender must not retry   (HTTP 400, INVALID_ARGUMENT)
├── RequestTooLarge      over the size limit: never retry         (HTTP 413, RESOURCE_EXHAUSTED)
│   └── RequestTooDense  too many messages for its bytes, likewise
└── StoreBusy            queue full, disk full, database locked   (HTTP 503, UNAVAILABLE)
"""

from __future__ import annotations

from hansard_compiler.errors import HansardError


class IngestError(HansardError):
    """A request that was not stored."""


class MalformedRequest(IngestError):
    """The body cannot be decoded; sending it again cannot help."""

    code = "malformed"

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class RequestTooLarge(IngestError):
    """The body is over the limit, before or after decompression."""

    code = "too_large"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"the request is larger than {limit_bytes:,} bytes, compressed or not")
        self.limit_bytes = limit_bytes


class RequestTooDense(RequestTooLarge):
    """The body holds more spans, attributes and values than its memory may take."""

    def __init__(self, limit_bytes: int) -> None:
        IngestError.__init__(
            self,
            "the request holds more spans, attributes and values than fit into"
            f" {limit_bytes:,} bytes of memory; send it in smaller requests",
        )
        self.limit_bytes = limit_bytes


class StoreBusy(IngestError):
    """Nothing was stored now, but the same request may be sent again."""

    code = "busy"
    retry_after_s = 1
