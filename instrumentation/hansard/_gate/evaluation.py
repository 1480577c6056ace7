"""One turn of an agent, and whether its answer is to be judged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hansard._gate.arguments import Json
from hansard._gate.flow import Flow, Step
from hansard._runtime.warnings import warn_once
from hansard._tracing.serialization import safe_repr
from hansard.errors import GateError, MustAwait

if TYPE_CHECKING:
    from hansard._gate.gate import Gate

V = TypeVar("V")
_turn: ContextVar[Turn | None] = ContextVar("hansard-turn", default=None)


@dataclass(slots=True)
class Turn:
    """What an agent did since its last message that waits for somebody."""

    pending: list[Json] = field(default_factory=list)  # approvals, in the order of the calls

    @property
    def is_pending(self) -> bool:
        return bool(self.pending)


@dataclass(frozen=True, slots=True)
class Evaluation(Generic[V]):
    """What an evaluator said of an answer; `was_skipped` where it was not asked."""

    verdict: V | None = None
    was_skipped: bool = False
    error: Exception | None = None  # it broke: the answer passes


@contextmanager
def current_turn() -> Iterator[Turn]:
    """Collect the calls of this block that wait for a decision."""
    turn = Turn()
    token = _turn.set(turn)
    try:
        yield turn
    finally:
        _turn.reset(token)


def note_pending(approval: Json) -> None:
    """Tell the current turn of a call that waits."""
    turn = _turn.get()
    if turn is not None:
        turn.pending.append(approval)


def evaluate(
    gate: Gate, turn: Turn, evaluator: Callable[..., V | Awaitable[V]], *given: Any
) -> Flow[Evaluation[V]]:
    """Have an answer judged; raises nothing but MustAwait.

    An answer that asks for a confirmation has not done what it was asked for, yet. Judged, it would
    fail and be tried again for ever, so it is not. Everything else is. A broken evaluator lets the
    answer pass, and is an event: a mediocre answer is better than none.
    """
    if turn.is_pending:
        return Evaluation(was_skipped=True)
    try:
        return Evaluation((yield Step(partial(evaluator, *given))))
    except MustAwait:
        raise
    except Exception as error:
        yield from note_failure(gate, "evaluator", error)
        return Evaluation(error=error)


def note_failure(gate: Gate, what: str, error: BaseException) -> Flow[None]:
    """Keep a failure as an event; where that fails too, the program is warned."""
    event = {"type": "failure", "action": what, "error": type(error).__name__, "agent": gate.agent}
    try:
        yield Step(lambda: gate.decisions.note(event), not gate.decisions.is_local)
    except GateError as trouble:
        warn_once(
            f"gate {what}",
            "%s failed (%s), and so did keeping that as an event: %s",
            what,
            safe_repr(error),
            trouble,
        )
