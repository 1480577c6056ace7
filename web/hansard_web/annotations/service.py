"""Requests to annotations: by the API, and by commands without a server."""

from __future__ import annotations

import time

import apsw

from hansard_store.annotations.rows import Target
from hansard_store.errors import InvalidQueryError
from hansard_store.runs.queries import get_run
from hansard_store.steps.queries import get_step
from hansard_web.annotations.panel import target_of


def find_target(
    connection: apsw.Connection, *, run: str | None = None, step: str | None = None
) -> tuple[str, str]:
    """Return the field and the whole id of what is annotated; raises NotFoundError."""
    now_ns = time.time_ns()
    if step:
        return "step_id", get_step(connection, step, now_ns=now_ns).step_id
    return "run_id", get_run(connection, run or "", now_ns=now_ns).run_id


def read_target(connection: apsw.Connection, *, run: str | None, step: str | None) -> Target | None:
    """Return the run or step that is requested; raises NotFoundError, AmbiguousIdError."""
    if run and step:
        raise InvalidQueryError("step", "name a run or a step, and not both")
    if step:
        return target_of(get_step(connection, step, now_ns=time.time_ns()))
    if run:
        return Target(bytes.fromhex(get_run(connection, run, now_ns=time.time_ns()).run_id))
    return None
