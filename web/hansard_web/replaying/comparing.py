"""What came out otherwise: the step a replay is of beside the step it made."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from hansard_collector.read import read_step
from hansard_compiler.calls import Message
from hansard_compiler.errors import NotFoundError
from hansard_compiler.replay.turns import says_the_same
from hansard_store.step_queries import get_step
from hansard_web.api.answers import Body


def comparison_body(
    connection: apsw.Connection, left: str, right: str | None, *, now_ns: int
) -> Body | None:
    """Return whether two steps answer the same; None without both."""
    if right is None:
        return None
    try:
        answers = [_output(connection, one, now_ns=now_ns) for one in (left, right)]
    except NotFoundError:
        return None
    return {"output": {"is_empty": says_the_same(*answers)}}


def _output(connection: apsw.Connection, step_id: str, *, now_ns: int) -> Sequence[Message]:
    call = read_step(connection, get_step(connection, step_id, now_ns=now_ns).id).normal.call
    return () if call is None else call.output
