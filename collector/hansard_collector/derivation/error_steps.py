"""Rows of steps that failed before there were any: made beside ingest, the newest first."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from functools import partial
from typing import Final

from hansard_collector.background import Background
from hansard_collector.derivation.rederivation import rederive_span
from hansard_collector.derivation.rows import DERIVED_VERSION
from hansard_collector.dialects.content.messages import MessageCache
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import transaction
from hansard_store.database.upkeep_slices import Pace
from hansard_store.error_groups import due
from hansard_store.errors import StoreCorruptError
from hansard_store.ingest.writer import IngestWriter

_AT_ONCE: Final = 50  # steps that are looked up; a slice makes some of them
_RETRY_S: Final = 60.0
_LAST_NS: Final = (1 << 63) - 1
_log = logging.getLogger("hansard.errors")


def derive_error_steps(folder: DataFolder, *, pace: Pace | None = None) -> int:
    """Derive the failed steps without a row again, in slices; return how many there were.

    Raises StoppedError when `pace` is to stop; what is done stays done.
    """
    pace, made, before = pace or Pace(), 0, (_LAST_NS, _LAST_NS)
    messages = MessageCache()
    with contextlib.closing(open_for_ingest(folder)) as connection:
        if not due.is_due(connection):
            return 0
        writer = IngestWriter(connection, derived_version=DERIVED_VERSION)
        while steps := due.due_steps(connection, before=before, limit=_AT_ONCE):
            until_s = time.monotonic() + pace.hold_s
            with writer.batch(now_ns=None) as batch:
                for step in steps:
                    before = (step.at_ns, step.span)
                    with contextlib.suppress(StoreCorruptError):  # `hansard verify` names it
                        rederive_span(
                            connection,
                            batch,
                            trace_id=step.trace_id,
                            span_id=step.span_id,
                            messages=messages,
                        )
                        made += 1
                    if time.monotonic() > until_s:
                        break
            pace.rest()
        with transaction(connection):
            due.set_done(connection)
    return made


def error_step_upkeep(folder: DataFolder) -> Background:
    """Return what makes such rows once, in a thread of its own; a look without any is one read."""
    return Background(
        "hansard-error-steps",
        partial(_look, folder),
        every_s=_RETRY_S,
        log=_log,
        put_off="errors of before the upgrade are put off",
    )


def _look(folder: DataFolder, stop: threading.Event) -> None:
    made = derive_error_steps(folder, pace=Pace(hold_s=0.005, stop=stop))
    if made:
        _log.warning("errors of before the upgrade are listed: %d steps", made)
