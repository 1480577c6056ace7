"""A fork that goes on live: which calls the model made, and where each result came from.

A call that was recorded has its recorded result, once. Every other one waits for a result: of the
program's own tool behind its gate, or entered by hand. Nothing in here runs anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, Literal

from hansard_compiler.calls import Json, Message, ToolCallPart, ToolResultPart
from hansard_compiler.canonical import canonical_json
from hansard_compiler.renamed import with_current_calls
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_compiler.replay.turns import calls_in

Origin = Literal["recorded", "gate", "hand"]
State = Literal["answered", "blocked", "needed"]

TURNS: Final = 10  # the default number
USD: Final = 1.0


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """What a tool gave when the run was recorded; `step_id` is the call that got it."""

    step_id: str
    call_id: str
    name: str
    arguments: Any
    result: Any

    @property
    def key(self) -> str:
        return call_key(self.name, self.arguments)


@dataclass(frozen=True, slots=True)
class LiveCall:
    """A tool call that the model made live."""

    turn: int
    call_id: str
    name: str
    arguments: Any
    state: State = "needed"
    origin: Origin | None = None  # of the result
    result: Any = None
    is_error: bool = False
    by: str | None = None  # who gave it
    recorded_in: str | None = None  # the step whose request held the recorded result
    recorded_number: int | None = None  # which of the recorded results, from 0
    approval_id: str | None = None
    block_reason: str | None = None  # pending, rejected, policy_denied …
    message: str | None = None

    @property
    def key(self) -> str:
        return call_key(self.name, self.arguments)


@dataclass(frozen=True, slots=True)
class Live:
    """How far a fork has gone live, and how far it may."""

    by: str = ""  # who requested it last
    turns: int = 0
    turns_left: int = TURNS
    spent_usd: float = 0.0
    usd_left: float = USD
    unpriced: tuple[str, ...] = ()  # models whose price is unknown: only turns bound them
    step_id: str | None = None  # the span that the live turns stand under
    calls: tuple[LiveCall, ...] = field(default=())

    def json(self) -> Json:
        fields = asdict(self)
        return {**fields, "unpriced": list(self.unpriced), "calls": [asdict(c) for c in self.calls]}

    def with_calls(
        self, reply: Sequence[Message], turn: int, pool: Sequence[RecordedResult]
    ) -> Live:
        """Return it with the calls of a response noted, unless they are."""
        if self.of_turn(turn):
            return self
        made = live_calls(reply, turn=turn, pool=pool, used=self.calls)
        return replace(self, calls=(*self.calls, *made))

    def of_turn(self, turn: int) -> list[LiveCall]:
        """Return the calls of one turn, in order."""
        return [one for one in self.calls if one.turn == turn]


def live_from(stored: Mapping[str, Any]) -> Live:
    """Return what `Live.json` wrote; fields of a later version are ignored."""
    stored = with_current_calls(stored)
    known, of_call = ({one.name for one in fields(kind)} for kind in (Live, LiveCall))
    calls = tuple(
        LiveCall(**{name: value for name, value in one.items() if name in of_call})
        for one in stored.get("calls", ())
    )
    saved = {name: value for name, value in stored.items() if name in known}
    return Live(**{**saved, "unpriced": tuple(saved.get("unpriced", ())), "calls": calls})


def call_key(name: str, arguments: Any) -> str:
    """Return what two calls have in common that ask for the same."""
    return canonical_json([name, arguments])


def results_in(messages: Iterable[Message], step_id: str) -> list[RecordedResult]:
    """Return the tool calls of a conversation that have a result in it, with their results."""
    calls: dict[str, ToolCallPart] = {}
    found = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart) and part.id:
                calls[part.id] = part
            elif isinstance(part, ToolResultPart) and part.id and part.id in calls:
                call = calls.pop(part.id)
                found.append(
                    RecordedResult(step_id, part.id, call.name, call.arguments, part.content)
                )
    return found


def live_calls(
    reply: Sequence[Message], *, turn: int, pool: Sequence[RecordedResult], used: Iterable[LiveCall]
) -> list[LiveCall]:
    """Return the calls of a response, those with the recorded result that is not used yet."""
    taken = {one.recorded_number for one in used}
    made = []
    for number, part in enumerate(calls_in(reply)):
        call = LiveCall(turn, part.id or f"call_{number}", part.name, part.arguments)
        at = next(
            (at for at, one in enumerate(pool) if one.key == call.key and at not in taken), None
        )
        if at is not None:
            taken.add(at)
            call = replace(
                call,
                state="answered",
                origin="recorded",
                result=pool[at].result,
                recorded_in=pool[at].step_id,
                recorded_number=at,
            )
        made.append(call)
    return made


def with_results(
    live: Live,
    results: Sequence[Mapping[str, Any]],
    pending: Sequence[Mapping[str, Any]],
    *,
    by: str,
) -> Live:
    """Return a fork with results for calls that wait, and with what is known of the others.

    Raises NotReplayable for a result that no call waits for: each is used once.
    """
    for one in results:
        origin: Origin = "gate" if one.get("origin") == "gate" else "hand"
        live = _changed(
            live,
            str(one["call_id"]),
            state="answered",
            origin=origin,
            result=one["result"],
            is_error=bool(one.get("is_error")),
            by=by,
            approval_id=one.get("approval_id"),
            block_reason=None,
            message=None,
        )
    for one in pending:
        live = _changed(
            live,
            str(one["call_id"]),
            state="blocked",
            by=by,
            approval_id=one.get("approval_id"),
            block_reason=one["reason"],
            message=one.get("message"),
        )
    return live


def _changed(live: Live, call_id: str, **news: Any) -> Live:
    at = next(
        (
            number
            for number, one in enumerate(live.calls)
            if one.call_id == call_id and one.state != "answered"
        ),
        None,
    )
    if at is None:
        raise NotReplayable(ReplayReason.RESULT_UNKNOWN, call_id)
    calls = (*live.calls[:at], replace(live.calls[at], **news), *live.calls[at + 1 :])
    return replace(live, calls=calls)


def result_parts(calls: Sequence[LiveCall], reply: Sequence[Message]) -> list[ToolResultPart]:
    """Return the results as they are sent to the model, each under its call's own id."""
    ids = [part.id for part in calls_in(reply)]
    return [
        ToolResultPart(call_id, _result_content(call), call.name)
        for call_id, call in zip(ids, calls, strict=True)
    ]


def _result_content(call: LiveCall) -> Any:
    if not call.is_error:
        return call.result
    return call.result if isinstance(call.result, str) else {"error": call.result}
