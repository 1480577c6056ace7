"""Requests to annotations: by the API, and by commands without a server."""

from __future__ import annotations

import time

import apsw

from hansard_store.annotations.rows import Target
from hansard_store.errors import InvalidQueryError
from hansard_store.runs.queries import get_run
from hansard_store.steps.queries import get_step
from hansard_web.annotations.panel import target_of


def read_target(connection: apsw.Connection, *, run: str | None, step: str | None) -> Target | None:
    """Return the run or step that is requested; raises NotFoundError, AmbiguousIdError."""
    if run and step:
        raise InvalidQueryError("step", "name a run or a step, and not both")
    if step:
        return target_of(get_step(connection, step, now_ns=time.time_ns()))
    if run:
        return Target(bytes.fromhex(get_run(connection, run, now_ns=time.time_ns()).run_id))
    return None
