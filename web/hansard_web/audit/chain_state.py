"""Whether the audit log is whole: checked when somebody looks, bounded, and remembered a moment."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

from opentelemetry.util.types import AttributeValue

from hansard import semconv
from hansard._tracing.open_span import outcome_of
from hansard_compiler.errors import HansardError
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.event_types import ChainReport, Head
from hansard_store.audit.events import head as head_of
from hansard_web.app.readers import Readers
from hansard_web.approvals.labels import hash_ends
from hansard_web.sidecar.recorder import Outlet, resource_of

MOST_EVENTS: Final = 30_000  # that a page checks by itself: some seconds
_FRESH_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Chain:
    """The state of the chain as a page tells it."""

    state: Literal["whole", "broken", "unknown", "empty"]
    head: Head
    checked: int = 0
    broken_seq: int | None = None
    broken_why: str = ""
    checked_ns: int = 0  # when
    took_ns: int = 0
    heads_checked: int = 0  # stored heads that it was compared with
    is_long: bool = False  # too long to be checked by a page

    @property
    def anchor(self) -> str:
        return self.head.text

    @property
    def head_ends(self) -> str:
        return hash_ends(self.head.hash.hex())


class Chains:
    """The last check of one store. The lock lets one request at a time check."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: Chain | None = None
        self._at_s = 0.0

    def last(self) -> Chain | None:
        """Return what the last check found, if that was a moment ago."""
        is_fresh = time.monotonic() - self._at_s < _FRESH_S
        return self._last if is_fresh else None

    def check(self, store: ApprovalService, *, again: bool) -> Chain:
        """Check the whole chain, unless it was checked a moment ago."""
        with self._lock:
            if not again and (known := self.last()) is not None:
                return known
            began_ns = time.perf_counter_ns()
            report = store.verify()
            took_ns = time.perf_counter_ns() - began_ns
            self._last = _chain_of(report, took_ns=took_ns)
            self._at_s = time.monotonic()
            return self._last


def read_chain(
    chains: Chains,
    readers: Readers,
    store: ApprovalService,
    *,
    verify: bool = False,
    again: bool = False,
) -> Chain:
    """Return the state of the chain; without `verify` only what is known already."""
    with readers.read() as connection:
        head = head_of(connection)
    if head.seq == 0:
        return Chain("empty", head)
    is_long = head.seq > MOST_EVENTS
    if verify and not is_long:
        return chains.check(store, again=again)
    known = chains.last()
    if known is not None:
        return replace(known, head=head) if known.state == "whole" else known
    return Chain("unknown", head, is_long=is_long)


def _chain_of(report: ChainReport, *, took_ns: int) -> Chain:
    broken = report.broken
    return Chain(
        state="whole" if broken is None else "broken",
        head=report.head,
        checked=report.checked,
        broken_seq=None if broken is None else broken.seq,
        broken_why="" if broken is None else broken.problem,
        checked_ns=time.time_ns(),
        took_ns=took_ns,
        heads_checked=report.heads_checked,
    )


# The head of the audit log, stored once a day beside the database and recorded in the trace.

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
        """Store the head of today where that was not done; a failure is logged and retried."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + _EVERY_S
        try:
            head = self._store.keep_head()
            if head is not None and self._tell is not None:
                self._tell(head)
        except (HansardError, OSError) as error:
            _log.warning("the head of the audit log is kept later: %s", error)


def telling(outlet: Outlet) -> Tell:
    """Return what tells a head as a span of this server, in a trace of its own."""

    def tell(head: Head) -> None:
        recording = outlet.recording(resource_of("hansard"))
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
