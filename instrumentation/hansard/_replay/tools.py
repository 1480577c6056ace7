"""Results for a fork that goes on live: the program's own tools, run behind its gate, and only so.

A reading tool runs under the gate's policy. One that writes becomes a pending approval: the call is
held, the fork waits, and once somebody approved it the gate runs it, once. What the gate does not
let through is told to the fork and never run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Final

from hansard import semconv
from hansard._gate.flow import is_looping
from hansard._gate.gate import Gate, Tools, current_gate
from hansard._gate.tools import ToolSet
from hansard._tracing.addresses import context_of
from hansard._tracing.context import entered
from hansard._tracing.serialization import to_json
from hansard.errors import (
    CallRefused,
    DecisionConflict,
    GateUnavailable,
    NotApproved,
    OutcomeUnknown,
    UnknownTool,
)
from hansard_compiler.calls import Json

_CUT: Final = re.compile("‹(?:redacted|withheld|masked)|\\[(?:secret|withheld): ")
_PENDING: Final = "pending"


def gate_for_replay(tools: Tools, replay_id: str) -> Gate | None:
    """Return the gate for a fork's tools: as the one entered here; None without any tool."""
    given = tools if isinstance(tools, ToolSet) else ToolSet(tools)
    if not len(given):
        return None
    marked = given.telling({semconv.REPLAY_LIVE: True, semconv.REPLAY_ID: replay_id})
    around = current_gate()
    return Gate(tools=marked) if around is None else around.with_tools(marked)


class Answers:
    """What a program has to say to the calls of one turn."""

    def __init__(self) -> None:
        self.results: list[Json] = []
        self.held: list[Json] = []

    @property
    def is_empty(self) -> bool:
        return not self.results and not self.held

    def json(self) -> Json:
        return {"results": self.results, "pending_calls": self.held}


def answer_calls(body: Json, gate: Gate, answers: Answers) -> None:
    """Put the calls that a fork waits for through a gate, in order; adds to `answers`.

    Raises GateUnavailable where nobody can decide or record: then nothing more is run, and what
    was added by then still holds.
    """
    ask = body["continuation"] or {}
    with entered(context_of(None, ask.get("live_step_id"))):
        for call in ask.get("calls", ()):
            if call["state"] in ("needed", "held"):
                _answer(call, gate, answers)


def _answer(call: Json, gate: Gate, answers: Answers) -> None:
    approval_id = call["approval_id"]
    arguments = call["arguments"]
    if approval_id is None and call["state"] == "held":
        return  # refused for good: somebody else may give a result
    if approval_id is None and _is_cut(arguments):
        _hold(call, answers, "arguments_cut", "secrets were cut out of its arguments")
        return
    try:
        if approval_id is None:
            result = _called(gate, call, answers)
        else:
            executed = _run(gate, str(call["name"]), lambda: gate.run(approval_id))
            result = executed.for_model()
    except GateUnavailable:
        raise
    except UnknownTool:
        return  # not this program's: it goes on waiting
    except NotApproved as error:
        status = str(error.approval.get("status"))
        because = _PENDING if status == "awaiting" else status
        _hold(call, answers, because, str(error), approval_id)
    except (CallRefused, DecisionConflict, OutcomeUnknown) as error:
        _hold(call, answers, error.code, str(error), approval_id)
    except Exception as error:  # the tool's own: the model is told, as an agent would
        _give(call, answers, f"{type(error).__name__}: {error}", approval_id, is_error=True)
    else:
        if result is not _HELD:
            _give(call, answers, result, approval_id)


_HELD: Final = object()


def _called(gate: Gate, call: Json, answers: Answers) -> Any:
    name, arguments = str(call["name"]), call["arguments"]
    with gate.turn() as turn:
        result = _run(gate, name, lambda: gate.call(name, arguments))
    # A call that waited, and was approved within that time, has run.
    waits = [one for one in turn.pending if _is_open(gate, str(one["approval_id"]))]
    if not waits:
        return result.for_model()
    approval_id = str(waits[0]["approval_id"])
    _hold(call, answers, _PENDING, waits[0].get("description"), approval_id)
    return _HELD


def _is_open(gate: Gate, approval_id: str) -> bool:
    """Whether a call that was proposed has not run: forgotten by the gate is what was claimed."""
    return gate.waiting.find(approval_id) is not None


def _run(gate: Gate, name: str, run: Callable[[], Any]) -> Any:
    """Run a tool of either kind; one that is awaited has a thread of its own inside a loop."""
    tool = gate.find_tool(name)
    if tool is None or not tool.may_wait or not is_looping():
        return run()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, run).result()


def _give(
    call: Json, answers: Answers, result: Any, approval_id: str | None, *, is_error: bool = False
) -> None:
    answers.results.append(
        {
            "call_id": call["call_id"],
            "result": json.loads(to_json(result)),
            "is_error": is_error,
            "origin": "gate",
            "approval_id": approval_id,
        }
    )


def _hold(
    call: Json, answers: Answers, because: str, message: Any, approval_id: str | None = None
) -> None:
    """Say why a call has no result; said again only where that is news."""
    if (call["held_because"], call["approval_id"]) == (because, approval_id):
        return
    told = None if message is None else str(message)[:2_000]
    answers.held.append(
        {
            "call_id": call["call_id"],
            "reason": because,
            "message": told,
            "approval_id": approval_id,
        }
    )


def _is_cut(arguments: Any) -> bool:
    """Whether a secret was cut out of arguments: then they are not what the model asked for."""
    return bool(_CUT.search(json.dumps(arguments, ensure_ascii=False)))
