"""Past the first divergence, on request: turns that are sent, with results nobody makes up.

What the model asks for has its recorded result where the very same call was recorded, once. For
every other call the fork stops and waits: a program runs its own tool behind its gate and gives
the result, or a person does. Nothing is run from here. Each turn is the request before it with
the answer and the results behind it, so every field of the sender's stays; where a compile made the
whole of its context, the compile is made again with them (live_context.py).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import apsw

from hansard_collector.derivation.cost import computed_cost
from hansard_compiler.calls import Json, Message, Tokens, ToolCallPart, ToolResultPart, message_json
from hansard_compiler.compile.engine import CompileResult
from hansard_compiler.compile.errors import CompileError, InvalidInput
from hansard_compiler.compile.inputs import context_item_data
from hansard_compiler.compile.models import CompilationRequest, ContextItem, parse
from hansard_compiler.diff.sides import CompileSide, side_of_result
from hansard_compiler.errors import ConfigError
from hansard_compiler.providers.adapter import request_bytes
from hansard_compiler.providers.base import RenderInput, from_payload
from hansard_compiler.providers.next_turn import continued
from hansard_compiler.providers.transport.exchange import ProviderResponse, read_json
from hansard_compiler.providers.transport.failures import RequestRefused
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_compiler.replay.json_edit import JsonText, NotEditable
from hansard_compiler.replay.live import (
    Live,
    LiveCall,
    RecordedResult,
    result_parts,
)
from hansard_web.replay.recompile import Recompiler, Remade, stored_request
from hansard_web.replay.request import ReplayInput
from hansard_web.replay.source import ReplayedStep, read_source
from hansard_web.replay.trace import ReplayRun
from hansard_web.replay.transport.destinations import Reach
from hansard_web.replay.transport.turn import ReplayTurn, exact_turn

# The context of live turns, compiled again: the compile before each with the messages since.
#
# So a fork that goes on has receipts, and its context stays within the budget. It is done only
# where the compile accounts for the whole of what was sent: compiled again as it was, it must
# render the request in hand. Everything of a request that is no context stays as it was sent.

# Where the APIs keep what a model knows; the rest of a request is how it is to answer.
_CONTEXT: Final = ("system", "instructions", "messages", "input", "tools")


@dataclass(frozen=True, slots=True)
class LiveContext:
    """What was compiled for the newest turn, and what compiles the next."""

    compiler: Recompiler
    request: CompilationRequest
    before: CompileSide

    def after(
        self, turn: ReplayTurn, reply: Message, results: Sequence[ToolResultPart]
    ) -> tuple[Remade, RenderInput, bytes]:
        """Return the compile after an answered turn, what it renders, and the request's bytes.

        Raises NotReplayable where it cannot be compiled, or leaves out what was just said.
        """
        request = _with(self.request, reply, results)
        result = self.compiler.compiled(request)
        render_input, data = _rendered(turn, result)
        if not _calls(reply.parts) <= {
            one for m in render_input.messages for one in _calls(m.parts)
        }:
            raise NotReplayable(
                ReplayReason.CONTEXT_EMPTY, "its newest turn does not fit the budget"
            )
        checks = self.compiler.decider.checks if self.compiler.decider else []
        return Remade(result, self.compiler.ports, checks, self.before), render_input, data

    def gone_on(self, remade: Remade) -> LiveContext:
        """Return it after another turn was compiled."""
        return replace(self, request=remade.result.request, before=remade.after)


def context_of(
    connection: apsw.Connection, turn: ReplayTurn, compiler: Recompiler
) -> LiveContext | None:
    """Return what compiles the turns after one; None where its compile is not all that was sent."""
    try:
        request = (
            stored_request(connection, turn.source)
            if turn.remade is None
            else turn.remade.result.request
        )
        result = compiler.compiled(request)
        _, data = _rendered(turn, result)
    except NotReplayable:
        return None
    if data != turn.request:
        return None
    return LiveContext(compiler, request, side_of_result(result))


def _with(
    request: CompilationRequest, reply: Message, results: Sequence[ToolResultPart]
) -> CompilationRequest:
    """Return the request with an answer and the results of its calls behind its messages."""
    seen = Counter(item.id.partition("#")[0] for item in request.context_items)
    messages = [message_json(reply), *(message_json(Message("tool", (one,))) for one in results)]
    try:
        data = [context_item_data(one, now=request.now, seen=seen) for one in messages]
        items = [parse(ContextItem, one) for one in data]
    except (CompileError, InvalidInput) as error:
        raise NotReplayable(ReplayReason.COMPILE_FAILED, str(error)) from None
    return request.model_copy(update={"context_items": [*request.context_items, *items]})


def _rendered(turn: ReplayTurn, result: CompileResult) -> tuple[RenderInput, bytes]:
    """Return what a compile gives a turn, and the turn's request with that context in it."""
    compiled = from_payload(result.payload, model=turn.render_input.model)
    render_input = replace(
        turn.render_input,
        messages=compiled.messages,
        system=compiled.system,
        tools=compiled.tools,
        boundary=compiled.boundary,
        stable_prefix_hash=compiled.stable_prefix_hash,
        volatile_suffix_hash=compiled.volatile_suffix_hash,
    )
    try:
        body = read_json(request_bytes(turn.form.render(render_input)))
        text = JsonText(turn.request)
    except (RequestRefused, ConfigError, NotEditable) as error:
        raise NotReplayable(ReplayReason.NOT_RENDERABLE, str(error)) from None
    before: Json = read_json(turn.request)
    text.rewrite(None, {**_only(before, has_context=False), **_only(body, has_context=True)})
    return render_input, text.bytes()


def _only(body: Mapping[str, Any], *, has_context: bool) -> Json:
    return {name: one for name, one in body.items() if (name in _CONTEXT) is has_context}


def _calls(parts: Iterable[Any]) -> set[str | None]:
    return {part.id for part in parts if isinstance(part, ToolCallPart)}


_SCRIPTED: Final = "scripted"


@dataclass(frozen=True, slots=True)
class ForkState:
    """The last call that was answered: what the next one goes on from."""

    turn: ReplayTurn
    answer: ProviderResponse
    step_id: str
    number: int  # of the turn, from 1


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a live fork stopped. `reason` None: the model requested no tool any more."""

    live: Live
    reason: ReplayReason | None
    ask: Json | None


def standing_at(connection: apsw.Connection, step_id: str, number: int, reach: Reach) -> ForkState:
    """Return the last call of a replay, from the store. Raises NotReplayable."""
    last = read_source(connection, step_id, now_ns=time.time_ns())
    request = ReplayInput(step_id=step_id)
    turn = exact_turn(connection, last, request, reach)
    if turn.blocked is not None:
        raise turn.blocked
    recorded_turn = exact_turn(
        connection, last, request.model_copy(update={"recorded": True}), reach
    )
    return ForkState(turn, recorded_turn.adapter.resend(recorded_turn.request), step_id, number)


@dataclass(slots=True)
class LiveFork:
    """The live turns of one fork, from where it stands until it stops."""

    live: Live
    source: ReplayedStep  # the recorded call that the fork parted from
    pool: Sequence[RecordedResult]
    run: ReplayRun
    context: LiveContext | None  # None: turns go on from the request as it was sent
    note: Callable[[Live, Json | None, BaseException | None], object]  # of every change
    say: Callable[[str], object]  # what could not be the same

    def go(self, at: ForkState) -> Stop:
        """Make one turn after the other. Raises what a call raises, and NotReplayable."""
        step_id = self.run.go_live(self.source, self.live.step_id)
        self.live = replace(self.live, step_id=step_id)
        while True:
            calls = self._calls(at)
            if not calls:
                return Stop(self.live, None, None)
            reason = self._missing(calls)
            if reason is not None:
                return self._stop(reason, at, calls)
            turn = self._following(at, calls)
            estimate = turn_estimate(at.turn, at.answer)["usd"]
            if (estimate or 0) > self.live.usd_left:
                return self._stop(ReplayReason.SPEND_LIMIT, at, calls)
            at = self._ask_next(turn, calls, at.number + 1)

    def _following(self, at: ForkState, calls: Sequence[LiveCall]) -> ReplayTurn:
        """Return the next turn, compiled again as long as that is possible."""
        if self.context is not None:
            try:
                return compiled_turn(at, calls, self.source, self.context)
            except NotReplayable as why:
                self.context = None
                self.say(f"from turn {at.number + 1} on the context was not compiled again: {why}")
        return following_turn(at, calls, self.source)

    def _calls(self, at: ForkState) -> list[LiveCall]:
        """Return the calls of an answer; those that are new are noted."""
        self.live = self.live.with_calls(at.answer.call.output, at.number, self.pool)
        self.note(self.live, None, None)
        return self.live.of_turn(at.number)

    def _missing(self, calls: Sequence[LiveCall]) -> ReplayReason | None:
        if self.live.turns_left < 1:
            return ReplayReason.TURN_LIMIT
        states = [one.state for one in calls]
        if "needed" in states:
            return ReplayReason.NEEDS_RESULTS
        return ReplayReason.NEEDS_APPROVAL if "blocked" in states else None

    def _stop(self, reason: ReplayReason, at: ForkState, calls: Sequence[LiveCall]) -> Stop:
        limits = (ReplayReason.TURN_LIMIT, ReplayReason.SPEND_LIMIT)
        ask = {
            "kind": "bounds" if reason in limits else "tool_results",
            "needs": {
                ReplayReason.NEEDS_RESULTS: "results",
                ReplayReason.NEEDS_APPROVAL: "approval",
            }.get(reason, "more"),
            "step_id": at.step_id,
            "live_step_id": self.live.step_id,
            "calls": [call_body(one) for one in calls],
            "estimate": turn_estimate(at.turn, at.answer),
        }
        return Stop(self.live, reason, ask)

    def _ask_next(self, turn: ReplayTurn, calls: Sequence[LiveCall], number: int) -> ForkState:
        for call in calls:
            if call.origin != "gate":  # the program tells of its own
                self.run.tool(call, self.source)
        self.live = replace(
            self.live, turns=self.live.turns + 1, turns_left=self.live.turns_left - 1
        )
        self.note(self.live, None, None)
        turn = self.run.compile(turn)
        if self.context is not None and turn.remade is not None:
            self.context = self.context.gone_on(turn.remade)
        reply = self.run.ask(turn)
        self._spend(turn, reply.answer)
        self.note(self.live, {**reply.json(turn), "is_live": True}, reply.answer.shortfall)
        return ForkState(turn, reply.answer, reply.step_id, number)

    def _spend(self, turn: ReplayTurn, answer: ProviderResponse) -> None:
        paid = _usd(turn, answer.call.tokens)
        if paid is None:
            unpriced = dict.fromkeys((*self.live.unpriced, turn.render_input.model))
            self.live = replace(self.live, unpriced=tuple(unpriced))
            return
        self.live = replace(
            self.live,
            spent_usd=round(self.live.spent_usd + paid, 12),
            usd_left=round(self.live.usd_left - paid, 12),
        )


def following_turn(at: ForkState, calls: Sequence[LiveCall], source: ReplayedStep) -> ReplayTurn:
    """Return the turn after an answered one. Raises NotReplayable where it cannot be made."""
    output = at.answer.call.output
    parts = result_parts(calls, output)
    try:
        data = continued(at.turn.form, at.turn.request, at.answer.response, parts)
    except (RequestRefused, ConfigError, ValueError) as error:
        raise NotReplayable(ReplayReason.NOT_RENDERABLE, str(error)) from None
    before = at.turn.render_input
    messages = (*before.messages, *output, Message("tool", tuple(parts)))
    render_input = replace(before, messages=messages)
    return _turn(at, source, data, render_input, remade=None)


def compiled_turn(
    at: ForkState, calls: Sequence[LiveCall], source: ReplayedStep, context: LiveContext
) -> ReplayTurn:
    """Return the turn after an answered one, its context compiled again; raises NotReplayable."""
    parts = result_parts(calls, at.answer.call.output)
    message = at.turn.form.continuation(at.answer.response)
    remade, render_input, data = context.after(at.turn, message, parts)
    return _turn(at, source, data, render_input, remade=remade)


def _turn(
    at: ForkState,
    source: ReplayedStep,
    data: bytes,
    render_input: RenderInput,
    *,
    remade: Remade | None,
) -> ReplayTurn:
    problems = at.turn.form.problems(read_json(data))
    if problems:
        raise NotReplayable(ReplayReason.BROKEN_PAIRS, "; ".join(problems[:5]))
    return replace(
        at.turn,
        source=source,
        request=data,
        render_input=render_input,
        is_exact=False,
        basis="continued" if remade is None else "compiled",
        remade=remade,
        recorded=None,
        notes=(),
    )


def turn_estimate(turn: ReplayTurn, answer: ProviderResponse) -> Json:
    """Return what the turn after an answer may cost: all of it again, and as long an answer.

    `usd` is None where the price is unknown.
    """
    tokens = answer.call.tokens
    whole = (tokens.input or turn.adapter.estimate(turn.render_input).tokens) + (tokens.output or 0)
    guess = Tokens(input=whole, output=tokens.output)
    return {
        "model": turn.render_input.model,
        "input_tokens": whole,
        "output_tokens": tokens.output,
        "usd": _usd(turn, guess),
    }


def _usd(turn: ReplayTurn, tokens: Tokens) -> float | None:
    if turn.destination.family == _SCRIPTED:
        return 0.0
    found = computed_cost(
        tokens,
        provider=turn.destination.provider,
        model=turn.render_input.model,
        at_ns=time.time_ns(),
    )
    return None if found is None else found.usd


def call_again(ask: Json | None, live: Live, steps: Sequence[Json]) -> Json:
    """Return what it takes to go on from the newest turn, whatever became of the next one."""
    newest = max((one.turn for one in live.calls), default=0)
    return {
        **(ask or {}),
        "kind": "continue_live",
        "step_id": steps[-1]["step_id"],
        "live_step_id": live.step_id,
        "calls": [call_body(one) for one in live.of_turn(newest)],
    }


def call_body(call: LiveCall) -> Json:
    """Return a call as `ask` shows it: with how it stands, and without a result."""
    return {
        "call_id": call.call_id,
        "name": call.name,
        "arguments": call.arguments,
        "state": call.origin if call.state == "answered" else call.state,
        "by": call.by,
        "approval_id": call.approval_id,
        "block_reason": call.block_reason,
        "message": call.message,
    }
