"""What came out otherwise: the step a replay is of beside the step it made, or would make."""

from __future__ import annotations

from functools import partial
from typing import Final

import apsw

from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.models import CompilationRequest
from hansard_compiler.compile.ports import Ports
from hansard_compiler.diff.compiles import compile_diff
from hansard_compiler.diff.counterfactuals import explain
from hansard_compiler.diff.requests import request_diff
from hansard_compiler.errors import NotFoundError
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.tokens.estimators import estimator_for
from hansard_web.api.values import Body
from hansard_web.compile_view.item_names import ItemNames
from hansard_web.diff.bodies import compile_diff_body, request_diff_body, step_diff_body
from hansard_web.diff.steps import compare_steps
from hansard_web.replay.recompile import Remade

# Trying takes a compile each, a quarter of a millisecond an item.
_ITEMS_TRIED: Final = 6_000
_MOST_COMPILES: Final = 32
_FEWEST_COMPILES: Final = 4


def comparison_body(
    connection: apsw.Connection, left: str, right: str | None, *, now_ns: int
) -> Body | None:
    """Return the comparison of two steps as `GET /v1/diff/steps` tells it; None without both."""
    if right is None:
        return None
    try:
        return step_diff_body(compare_steps(connection, left, right, now_ns=now_ns))
    except NotFoundError:
        return None


def remade_body(remade: Remade, redactor: Redactor) -> Body:
    """Return how a compile differs from the one it started from, with the cause of each flip."""
    left, right = remade.before, remade.after
    diff = compile_diff(left, right)
    most = _ITEMS_TRIED // max(len(diff.items), 1)
    found = explain(
        diff,
        left,
        right,
        compile_again=partial(_compiled, redactor=redactor),
        most_compiles=min(max(most, _FEWEST_COMPILES), _MOST_COMPILES),
    )
    return compile_diff_body(found, ItemNames(left.request, right.request))


def requests_body(recorded: bytes | None, rendered: bytes) -> Body:
    """Return how two requests differ, byte for byte and by path."""
    return request_diff_body(request_diff(recorded, rendered))


def _compiled(request: CompilationRequest, *, redactor: Redactor) -> CompileResult:
    counter = estimator_for(request.provider, request.model)
    return compile_context(request, Ports(counter=counter, redactor=redactor))
