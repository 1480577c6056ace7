"""Making a recorded model call again, from a program.

    answer = run.call_model(compiled)
    again = hansard.replay(answer, n=5)                        # the very same bytes, five times
    other = hansard.replay(answer, token_budget=2_000, remove=["docs/large.md"])
    print(again.spread["different"], other.comparison["output"]["is_empty"])

The server makes it, with the server's keys; in embedded mode this process does, with its own. What
was recorded so far is sent first. Unlike recording, a replay raises.

    fork = hansard.replay(answer, live=True, tools=[find_order, cancel_order])
    fork = hansard.continue_replay(fork, tools=[…])            # once the call is approved
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Final

from hansard import semconv
from hansard._backend import open_backend, settings_of_this_process
from hansard._gate.flow import is_looping
from hansard._gate.gate import Gate, Tools, current_gate
from hansard._gate.tools import ToolSet
from hansard._models.answer import ModelAnswer
from hansard._runs.run import context_of
from hansard._runs.step import Step
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
from hansard_compiler.replay.errors import NotReplayable, ReplayReason

_CUT: Final = re.compile("‹(?:redacted|withheld|masked)|\\[(?:secret|withheld): ")
_PENDING: Final = "pending"


def gate_for_replay(tools: Tools, replay_id: str) -> Gate | None:
    """Return the gate for a fork's tools: as the one entered here; None without any tool."""
    tool_set = tools if isinstance(tools, ToolSet) else ToolSet(tools)
    if not len(tool_set):
        return None
    marked = tool_set.with_attributes({semconv.REPLAY_LIVE: True, semconv.REPLAY_ID: replay_id})
    around = current_gate()
    return Gate(tools=marked) if around is None else around.with_tools(marked)


class Answers:
    """The program's results for the calls of one turn."""

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

    Raises GateUnavailable if the store of approvals cannot be reached: then nothing more runs, and
    what was added by then stays.
    """
    ask = body["continuation"] or {}
    with entered(context_of(None, ask.get("live_step_id"))):
        for call in ask.get("calls", ()):
            if call["state"] in ("needed", "blocked"):
                _answer(call, gate, answers)


def _answer(call: Json, gate: Gate, answers: Answers) -> None:
    approval_id = call["approval_id"]
    arguments = call["arguments"]
    if approval_id is None and call["state"] == "blocked":
        return  # refused finally: another program may give a result
    # With a secret cut out of them they are not those of the model.
    if approval_id is None and _CUT.search(json.dumps(arguments, ensure_ascii=False)):
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
    except Exception as error:  # of the tool: the model gets it, as in an agent
        _give(call, answers, f"{type(error).__name__}: {error}", approval_id, is_error=True)
    else:
        if result is not _HELD:
            _give(call, answers, result, approval_id)


_HELD: Final = object()


def _called(gate: Gate, call: Json, answers: Answers) -> Any:
    name, arguments = str(call["name"]), call["arguments"]
    with gate.turn() as turn:
        result = _run(gate, name, lambda: gate.call(name, arguments))
    # A call that waited, and was approved within that time, has run: what was claimed is forgotten.
    waits = [one for one in turn.pending if gate.waiting.find(str(one["approval_id"]))]
    if not waits:
        return result.for_model()
    approval_id = str(waits[0]["approval_id"])
    _hold(call, answers, _PENDING, waits[0].get("description"), approval_id)
    return _HELD


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
    if (call["block_reason"], call["approval_id"]) == (because, approval_id):
        return
    text = None if message is None else str(message)[:2_000]
    answers.held.append(
        {
            "call_id": call["call_id"],
            "reason": because,
            "message": text,
            "approval_id": approval_id,
        }
    )


class Replay:
    """A replay in its current state; `body` is the response of `GET /v1/replay/{id}`."""

    def __init__(self, body: Json) -> None:
        self.body = body

    def __getattr__(self, name: str) -> Any:
        """Return a field of the body: `state`, `run_id`, `notes`, `spread`, `comparison` …"""
        try:
            return self.__dict__["body"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def is_done(self) -> bool:
        return bool(self.body["state"] == "done")

    @property
    def is_same_request(self) -> bool:
        """Whether the bytes that were sent are the recorded ones."""
        return bool(self.body["same_request"])

    def __repr__(self) -> str:
        return f"<Replay {self.body['short_id']} {self.body['mode']} {self.body['state']}>"


def replay(
    step: str | Step | ModelAnswer,
    *,
    recorded: bool = False,
    forward: bool = False,
    n: int = 1,
    model: str | None = None,
    provider: str | None = None,
    token_budget: int | None = None,
    response_reserve: int | None = None,
    weights: Mapping[str, float] | None = None,
    policy: Iterable[Mapping[str, Any]] | None = None,
    remove: Iterable[str] = (),
    mutations: Iterable[Mapping[str, Any]] = (),
    notes: str | None = None,
    allow_other_address: bool = False,
    allow_provider_side_effects: bool = False,
    script: Mapping[str, Any] | None = None,
    timeout_s: float = 600.0,
    live: bool = False,
    tools: Tools = (),
    max_turns: int | None = None,
    max_usd: float | None = None,
) -> Replay:
    """Make a model call again and wait until that has ended.

    `step` is a step's id, or the answer of `call_model`. Without a change the recorded bytes are
    sent again; `recorded` answers from the recording and sends nothing; `forward` goes on through
    the later turns of the run. `model`, `provider`, `token_budget`, `response_reserve`, `weights`,
    `policy` and `remove` (ids of items) are the common changes, `mutations` any of them, in order.

    `live` is a fork that goes on past the first divergence: the model is called for up to
    `max_turns` further turns and `max_usd`. Calls that were recorded have their recorded results;
    for the others `tools` run behind the gate that is entered here, or one of their own: what reads
    runs, what writes waits for an approval, and the replay's state is `waiting`.

    A request that has its provider run tools (MCP servers, web search, code) or keep state is
    refused with `provider_side_effects`. With `allow_provider_side_effects` the replay is `waiting`
    until its approval (`replay.continuation["approval_id"]`) is granted; `continue_replay` then
    sends it.

    Raises NotReplayable with a reason, ReplayUnavailable if it cannot be made now, NotFoundError.
    """
    bounds = _bounds_of_live(live, tools, max_turns, max_usd)
    budget: Json = {"token_budget": token_budget, "response_reserve": response_reserve}
    changes = _changes(model, provider, budget, weights, policy, remove)
    made_with = _made_with(allow_other_address, allow_provider_side_effects, script, timeout_s)
    body: Json = {
        "step_id": _step_id(step),
        "mode": "forward" if forward or live else None,
        "live": live,
        **bounds,
        "recorded": recorded,
        "mutations": [*changes, *map(dict, mutations)],
        "n": n,
        "notes": notes,
        **made_with,
    }
    found = Replay(_make(body, timeout_s * n))
    return _answered(found, tools, made_with) if live else found


def _make(body: Json, timeout_s: float, *, goes_on: str | None = None) -> Json:
    """Make a replay in the backend of this process, after what was recorded so far is sent."""
    from hansard._runtime.setup import flush

    settings = settings_of_this_process()
    flush()
    return open_backend(settings).make_replay(body, timeout_s, goes_on=goes_on)


def _made_with(
    allow_other_address: bool,
    allow_provider_side_effects: bool,
    script: Mapping[str, Any] | None,
    timeout_s: float,
) -> Json:
    """Return what a fork is made with and goes on with."""
    return {
        "allow_other_address": allow_other_address,
        "allow_provider_side_effects": allow_provider_side_effects,
        "script": None if script is None else dict(script),
        "timeout_s": timeout_s,
    }


def continue_replay(
    replay: Replay | str,
    *,
    tools: Tools = (),
    results: Mapping[str, Any] | None = None,
    max_turns: int | None = None,
    max_usd: float | None = None,
    allow_other_address: bool = False,
    allow_provider_side_effects: bool = False,
    script: Mapping[str, Any] | None = None,
    timeout_s: float = 600.0,
) -> Replay:
    """Have a fork that stopped go on live, and return it where it ends or waits again.

    `results` gives what calls came to by their call ids, by hand; `tools` run for the others as in
    `replay`, approved ones among them. `max_turns` and `max_usd` are new bounds from here. A replay
    that waits for the approval of what its provider does is sent, once that is granted.

    Raises NotReplayable, ReplayUnavailable, NotFoundError, and GateUnavailable if the gate
    cannot decide or record: then nothing ran that is not recorded.
    """
    replay_id = replay if isinstance(replay, str) else str(replay.body["replay_id"])
    by_hand = [{"call_id": key, "result": value} for key, value in (results or {}).items()]
    bounds = {"max_turns": max_turns, "max_usd": max_usd}
    made_with = _made_with(allow_other_address, allow_provider_side_effects, script, timeout_s)
    body = {**made_with, **bounds, "results": by_hand}
    found = Replay(_make(body, timeout_s, goes_on=replay_id))
    return _answered(found, tools, made_with)


def _answered(found: Replay, tools: Tools, made_with: Json) -> Replay:
    """Run the tools that a fork waits for behind a gate, for as long as that brings it on."""
    gate = gate_for_replay(tools, found.replay_id)
    while found.state == "waiting" and gate is not None:
        answers = Answers()
        try:
            answer_calls(found.body, gate, answers)
        finally:  # what ran is reported, also if the gate failed after it
            if not answers.is_empty:
                after = found.body["continuation"]["step_id"]
                body = {**made_with, **answers.json(), "after": after}
                found = Replay(_make(body, made_with["timeout_s"], goes_on=found.replay_id))
        if answers.is_empty:
            break
    return found


def _bounds_of_live(
    live: bool, tools: Tools, max_turns: int | None, max_usd: float | None
) -> dict[str, float]:
    """Return the bounds; raises ValueError if there is nothing to bound."""
    named = {"max_turns": max_turns, "max_usd": max_usd}
    bounds = {name: value for name, value in named.items() if value is not None}
    if not live and (tools or bounds):
        raise ValueError("tools, max_turns and max_usd require live=True")
    return bounds


def _changes(
    model: str | None,
    provider: str | None,
    budget: Json,
    weights: Mapping[str, float] | None,
    policy: Iterable[Mapping[str, Any]] | None,
    remove: Iterable[str],
) -> list[Json]:
    """Return a change for each operation of which a field is set, and each item to remove."""
    fields: dict[str, Json] = {
        "set_provider": {"provider": provider},
        "set_model": {"model": model},
        "set_budget": budget,
        "set_weights": {"weights": None if weights is None else dict(weights)},
        "set_policy": {"rules": None if policy is None else [dict(rule) for rule in policy]},
    }
    known = {op: {k: v for k, v in named.items() if v is not None} for op, named in fields.items()}
    ids = [remove] if isinstance(remove, str) else remove
    return [
        *({"op": op, **named} for op, named in known.items() if named),
        *({"op": "remove_item", "item_id": one} for one in ids),
    ]


def _step_id(step: str | Step | ModelAnswer) -> str:
    if isinstance(step, ModelAnswer):
        step = step.recorded.step_id
    elif isinstance(step, Step):
        step = step.step_id or ""
    if not isinstance(step, str) or not step:
        raise NotReplayable(ReplayReason.NOT_RECORDED, "the call was not recorded")
    return step
