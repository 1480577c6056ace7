"""The thread that takes to disk what cannot be sent now."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import Any, Final

from hansard._export.dropped import Reason
from hansard._export.queue import Batch
from hansard._export.spool.files import Kind
from hansard._export.worker_state import STALL_S, Step, Transit
from hansard._runtime.warnings import warn_once

_RETRY_S: Final = 5.0  # after keeping spans failed
_log = logging.getLogger("hansard")


class KeepingLoop:
    """Works while the last attempt failed, or one has been under way for a second."""

    def __init__(self, transit: Transit) -> None:
        self._at = transit

    def run(self) -> None:
        while (step := self._at.next(self._choose)) is not None:
            try:
                step()
            except Exception as error:  # as in the sender's thread
                warn_once("internal", "keeping spans failed, and is tried again: %r", error)
                _log.debug("keeping failed", exc_info=True)
                with self._at.lock:
                    self._at.is_keeping = False
                    self._at.disk.retry_s = time.monotonic() + _RETRY_S

    def _choose(self, now_s: float) -> tuple[Step | None, float | None]:
        flight, since_s = self._at.flight, self._at.attempt_since_s
        if now_s < self._at.disk.retry_s:
            return None, self._at.disk.retry_s
        is_stalled = since_s is not None and since_s + STALL_S <= now_s
        times = [] if since_s is None or is_stalled else [since_s + STALL_S]
        if flight is not None and flight.file is None:
            if is_stalled and flight.is_ready:
                return partial(self._at.keep_flight, flight), None
            is_stalled = False  # what came after it goes to disk after it
        if self._at.contact.is_ill or is_stalled or len(self._at.backlog):
            due_s = self._at.waiting.due_s(self._at.delay_s)
            if due_s is not None and (self._at.flushing or due_s <= now_s):
                self._at.is_keeping = True
                return self._keep_batch, None
            open_s = self._at.open_spans.next_due_s() if self._at.contact.is_ill else None
            if open_s is not None and open_s <= now_s:
                return self._keep_open, None
            times += [one for one in (due_s, open_s) if one is not None]
        return None, min(times, default=None)

    def _keep_batch(self) -> None:
        with self._at.writing:
            with self._at.lock:
                batch = None if self._at.is_closed else self._at.waiting.take()
            if batch is not None:
                batch.items = self._at.ready(batch.kind, batch.items)
                file = self._at.disk.write(batch.kind, batch.items)
                with self._at.lock:
                    if file is None and not self._at.is_closed:
                        self._at.waiting.put_back(batch)
                    elif file is None:
                        self._at.backlog.lose(
                            batch.kind.signal, Reason.SPOOL_UNWRITABLE, len(batch.items)
                        )
                    else:
                        self._at.settled += batch.taken
        with self._at.lock:
            self._at.is_keeping = False
            self._at.news.notify_all()

    def _keep_open(self) -> None:
        """Keep start records too: a process that is killed now has no other trace of them."""
        with self._at.writing:
            spans = self._at.open_spans.take_due()
            if spans and self._at.disk.write(Kind.OPENS, self._at.ready(Kind.OPENS, spans)) is None:
                self._at.open_spans.untell(spans)
            self._at.open_spans.take_pulse()  # nobody hears it now; the next one is due later

    def keep_the_rest(self, until_s: float) -> None:
        """Write to disk what was not sent, as long as there is time for it."""
        with self._at.writing:
            with self._at.lock:
                flight = self._at.flight
                rest: list[Batch] = []
                if flight is not None and flight.file is None:
                    rest.append(flight.batch)
                while (batch := self._at.waiting.take()) is not None:
                    rest.append(batch)
            if rest or self._at.is_left():
                self._at.contact.complain("it did not take everything before the program ended")
            for batch in rest:
                items = [one for one in batch.items if not is_own_news(one)]
                if time.monotonic() > until_s:
                    self._at.backlog.lose(batch.kind.signal, Reason.ENDED, len(items))
                elif items:
                    items = list(self._at.ready(batch.kind, items))
                    if items and self._at.disk.write(batch.kind, items) is None:
                        self._at.backlog.lose(
                            batch.kind.signal, Reason.SPOOL_UNWRITABLE, len(items)
                        )


def is_own_news(item: Any) -> bool:
    """Say whether an item is of no use later: a pulse, which nobody misses."""
    record = getattr(item, "log_record", None)
    return record is not None and record.event_name == "hansard.pulse"
