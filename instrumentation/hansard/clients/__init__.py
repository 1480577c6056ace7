"""Clients of models: the exact bytes of their calls, and the instrumentors that others keep."""

from __future__ import annotations

from hansard.clients.http import record_http, unrecord_http
from hansard.clients.switching import (
    Instrumentation,
    State,
    instrument,
    instrumentations,
    uninstrument,
)

__all__ = [
    "Instrumentation",
    "State",
    "instrument",
    "instrumentations",
    "record_http",
    "uninstrument",
    "unrecord_http",
]
