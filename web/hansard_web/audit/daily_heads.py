"""The head of the audit log, kept once a day beside the database and told in the trace."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Final

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.util.types import AttributeValue

from hansard import semconv
from hansard._tracing.open_span import outcome_of
from hansard_compiler.errors import HansardError
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.event_types import Head
from hansard_web.sidecar.recorder import Outlet

_EVERY_S: Final = 60.0  # between two looks whether a new day has come
_log = logging.getLogger("hansard.approvals")
Tell = Callable[[Head], None]


class HeadKeeper:
    """Keeps a day's head when its time has come; used by one thread."""

    def __init__(self, store: ApprovalService, tell: Tell | None) -> None:
        self._store = store
        self._tell = tell
        self._next_s = 0.0

    def look(self) -> None:
        """Keep the head of today where that was not done; failing is put off, and told."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + _EVERY_S
        try:
            kept = self._store.keep_head()
            if kept is not None and self._tell is not None:
                self._tell(kept)
        except (HansardError, OSError) as error:
            _log.warning("the head of the audit log is kept later: %s", error)


def telling(outlet: Outlet) -> Tell:
    """Return what tells a head as a span of this server, in a trace of its own."""

    def tell(head: Head) -> None:
        recording = outlet.recording(_RESOURCE)
        attributes: dict[str, AttributeValue | None] = {
            semconv.EVENTS_SEQ: head.seq,
            semconv.EVENTS_HASH: head.hash.hex(),
        }
        made = recording.begin(
            semconv.SPAN_EVENTS_HEAD,
            trace_id=os.urandom(16).hex(),
            span_id=os.urandom(8).hex(),
            parent_span_id=None,
            attributes=attributes,
        )
        if made.claim():
            made.close(outcome_of(None, None))
        recording.save()

    return tell


_RESOURCE: Final = Resource(
    attributes=[KeyValue(key="service.name", value=AnyValue(string_value="hansard"))]
)
