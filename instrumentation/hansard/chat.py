"""A conversation in which people confirm what an agent is about to change.

    chat = hansard.chat.ChatGate(channel, agent=answer, tools=crm_tools)
    chat.handle("Create a contact for Maria Garcia, maria@acme.com")   # asks
    chat.handle("yes")                                                 # runs it: "Done! …"

Agent, tools, evaluator and the channel's methods may be async; in an event loop it is
`await chat.ahandle(…)`.

A channel has one pending action at a time, for five minutes; a newer one replaces it. The reply is
read first: yes runs the action, no cancels it, and any other message cancels it and is
then answered as usual. Whether that is typed or pressed on a button is the channel's affair.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from hansard import approvals
from hansard._gate.arguments import Json
from hansard._gate.execution import run, run_all_approved
from hansard._gate.flow import Flow, FlowStep, adrive, can_wait, drive, may_be_async
from hansard._gate.gate import Gate, Tools
from hansard._gate.interruption import may_have_run
from hansard._gate.pending import PendingTurn
from hansard._runtime.durations import Duration
from hansard._runtime.warnings import warn_once
from hansard._tracing.serialization import safe_repr, safe_str
from hansard.errors import (
    AwaitRequired,
    DecisionConflict,
    DecisionRefused,
    GateError,
    RunsFailed,
)
from hansard.results import Executed, progress

T = TypeVar("T")
V = TypeVar("V")

EXPIRES_S: Final = 300.0
PROMPT: Final = '-- reply "yes" to confirm or "no" to cancel.'
CANCELLED: Final = "Cancelled."

_UNSEEN: Final = "There is something new, which was not shown yet."
_INSTEAD: Final = "`await chat.ahandle(…)`, `apress` or `aresume`"

Verdict: TypeAlias = Literal["yes", "no", "other"]
_YES, _NO = frozenset({"yes", "y"}), frozenset({"no", "n"})
_REMOVE: Final = re.compile(r"(?:remove|without|drop)\s+((?:\d+[\s,]*)+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a person: the agent's own words, and the calls that would run."""

    text: str
    actions: Sequence[Json] = field(repr=False)  # approvals, as the API has them

    @property
    def prompt(self) -> str:
        """The part that no model wrote: each action as it would run, and how to answer."""
        lines = [_line(one) + _count(one) for one in self.actions]
        if len(lines) == 1:
            return f"{lines[0]}\n{PROMPT}"
        listed = "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))
        return f'{listed}\n{PROMPT} "remove 2" takes one off the list.'


DecideToken: TypeAlias = str | Callable[[str], str | None] | None


class Channel(Protocol):
    """Where a conversation takes place: a terminal, a messenger, a web page; async or not.

    With a server, yes and no are decisions of a person: a channel may have `decide_token`, the
    token of the person who writes there, or a function of `by` where several do. The agent's own
    token never decides.
    """

    name: str  # the channel's id, one a conversation

    def send(self, text: str) -> Awaitable[None] | None:
        """Show a text."""

    def ask(self, question: Question) -> Awaitable[None] | None:
        """Show a question: with its prompt to be answered in words, or with buttons."""


@dataclass(slots=True)
class TextChannel:
    """A channel of plain text: the prompt says what to reply. `write` may be async."""

    name: str
    write: Callable[[str], object]
    decide_token: DecideToken = field(default=None, repr=False)

    def send(self, text: str) -> Any:
        return self.write(text)

    def ask(self, question: Question) -> Any:
        return self.write("\n\n".join(part for part in (question.text, question.prompt) if part))


def verdict_of(reply: str) -> Verdict:
    """Return the meaning of a reply to a question: yes or y, no or n, exactly, else other."""
    word = reply.strip().casefold()
    if word in _YES:
        return "yes"
    return "no" if word in _NO else "other"


def _count(approval: Json) -> str:
    counted = progress(approval)
    return f" ({counted})" if counted else ""


@dataclass(frozen=True, slots=True)
class _Evaluation(Generic[V]):
    """The verdict of an evaluator on an answer; `was_skipped` if it was not called."""

    verdict: V | None = None
    was_skipped: bool = False
    error: Exception | None = None  # of the evaluator: the answer passes


class ChatGate:
    """One conversation: its messages, its agent, and the confirmations between them.

    `agent` takes a message and returns its answer; the tools it calls go through `self.gate`, which
    is the current gate meanwhile. `evaluator` takes message and answer; false has the agent asked
    once more. With `batch`, all that one message leads to is confirmed together, and can be taken
    off the list one by one; without it the last action counts. Options of `hansard.gate` are taken
    too.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        agent: Callable[[str], str | Awaitable[str]],
        tools: Tools = (),
        evaluator: Callable[[str, str], bool | Awaitable[bool]] | None = None,
        expires_in_s: Duration = EXPIRES_S,
        batch: bool = False,
        **options: Any,
    ) -> None:
        self.channel = channel
        self.gate = Gate(
            tools=tools,
            channel=channel.name,
            one_per_channel=True,
            expires_in_s=expires_in_s,
            **options,
        )
        self.last_evaluation: _Evaluation[bool] | None = None
        self._is_batching = batch
        # The draft of each approval that was shown; None before the first message of this process.
        self._shown: dict[str, int] | None = None
        self._agent = agent
        self._evaluator = evaluator

    # ---- messages

    def handle(self, message: str, *, by: str = "") -> None:
        """Take a message of a person: the answer to a pending action, or something new.

        Raises AwaitRequired inside a running event loop where something has to be awaited; a
        pending action stays pending then.
        """
        drive(self._handled(message, by))

    async def ahandle(self, message: str, *, by: str = "") -> None:
        """The same in an event loop."""
        await adrive(self._handled(message, by))

    def press(self, approval_id: str, verdict: Literal["yes", "no"], *, by: str = "") -> None:
        """Take the answer of a button, which names its approval."""
        drive(self._pressed(approval_id, verdict, by))

    async def apress(
        self, approval_id: str, verdict: Literal["yes", "no"], *, by: str = ""
    ) -> None:
        """The same in an event loop."""
        await adrive(self._pressed(approval_id, verdict, by))

    def resume(self) -> None:
        """Run what was approved elsewhere, or before a restart, and report it in the channel."""
        drive(self._resumed())

    async def aresume(self) -> None:
        """The same in an event loop."""
        await adrive(self._resumed())

    def pending(self) -> list[Json]:
        """Return the pending actions of this channel, in the order of the list."""
        found = self.gate.decisions.approvals(
            status="awaiting", channel=self.channel.name, limit=500
        )
        return found[::-1]

    # ---- the same as flows, which are driven or awaited

    def _handled(self, message: str, by: str) -> Flow[None]:
        with self.gate:
            try:
                yield from self._check_waiting(is_message=True)
                yield from self._note("message.inbound", by=by, text=message)
                if not (yield from self._is_answer(message, by)):
                    yield from self._process(message)
            except AwaitRequired:
                raise
            except GateError as error:
                yield from self._say(f"Nothing was done: {error}")

    def _pressed(self, approval_id: str, verdict: Literal["yes", "no"], by: str) -> Flow[None]:
        with self.gate:
            try:
                yield from self._check_waiting(is_message=False)
                pending = yield from self._pending()
                waiting = [one for one in pending if one["approval_id"] == approval_id]
                shown = self._shown or {}
                if verdict == "yes" and any(
                    one["revision"] != shown.get(approval_id, 1) for one in waiting
                ):
                    yield from self._ask(_UNSEEN, waiting)
                elif waiting:
                    yield from self._answered(verdict, waiting, by)
                else:
                    yield from self._came_late(approval_id, verdict)
            except AwaitRequired:
                raise
            except GateError as error:
                yield from self._say(f"Nothing was done: {error}")

    def _resumed(self) -> Flow[None]:
        with self.gate:
            yield from self._check_waiting(is_message=False)
            failed: Mapping[str, Exception] = {}
            try:
                ran: Sequence[Executed] = yield from run_all_approved(
                    self.gate, channel=self.channel.name, agent=None
                )
            except RunsFailed as some:
                ran, failed = some.executed, some.failed
            for done in ran:
                yield from self._say(f"Done! {done.description}.")
            for identity, error in failed.items():
                approval = yield from self._stored(partial(approvals.get, identity))
                yield from self._report_failure(approval, error)

    def _check_waiting(self, *, is_message: bool) -> Flow[None]:
        """Raise AwaitRequired at once for what a running event loop would have to await."""
        callables: list[Any] = [self.channel.send, self.channel.ask]
        if isinstance(self.channel, TextChannel):
            callables.append(self.channel.write)
        if is_message:
            callables += [self._agent, self._evaluator]
        if any(map(may_be_async, callables)):
            yield can_wait(AwaitRequired("this chat", _INSTEAD))

    # ---- answers

    def _is_answer(self, message: str, by: str) -> Flow[bool]:
        """Whether the message was only an answer; pending actions are decided either way."""
        waiting = yield from self._pending()
        if not waiting:
            return False
        verdict = verdict_of(message)
        if verdict == "yes" and not self._were_shown(waiting):
            yield from self._ask(_UNSEEN, waiting)
            return True
        if verdict == "other" and len(waiting) > 1:
            numbers = _removed(message, len(waiting))
            if numbers:
                yield from self._remove(numbers, waiting, by)
                return True
        yield from self._answered(verdict, waiting, by)
        return verdict != "other"

    def _were_shown(self, waiting: Sequence[Json]) -> bool:
        """Whether a person has seen all drafts; those of an earlier process count as seen."""
        if self._shown is None:
            return all(one["revision"] == 1 for one in waiting)
        return all(self._shown.get(one["approval_id"]) == one["revision"] for one in waiting)

    def _answered(self, verdict: Verdict, waiting: Sequence[Json], by: str) -> Flow[None]:
        if verdict == "yes":
            yield from self._check_tools(waiting)
            for approval in waiting:
                yield from self._confirm(approval, by)
            return
        reason = "cancelled" if verdict == "no" else "cancelled by another message"
        cancelled: list[Json] = []
        for one in waiting:
            is_cancelled = yield from self._reject(one, by, reason)
            cancelled += [one] if is_cancelled else []
        if verdict == "no" and cancelled:
            yield from self._say(CANCELLED)
        elif cancelled:
            yield from self._say(f"Cancelled: {'; '.join(_line(one) for one in cancelled)}.")

    def _check_tools(self, waiting: Sequence[Json]) -> Flow[None]:
        """Raise AwaitRequired for tools that cannot be awaited here, before approving."""
        for approval in waiting:
            tool = self.gate.find_tool(str(approval["tool"]))
            if tool is not None and tool.may_wait:
                yield can_wait(AwaitRequired(f"tool {tool.name!r}", _INSTEAD))

    def _came_late(self, approval_id: str, verdict: Verdict) -> Flow[None]:
        """Report that a button came too late, unless it was only pressed twice."""
        approval = yield from self._stored(lambda: approvals.get(approval_id))
        done, stands = ("run", "approved") if verdict == "yes" else ("cancelled", "rejected")
        if approval.get("channel") == self.channel.name and approval["status"] != stands:
            yield from self._say(f"{_line(approval)} was not {done}: it is {approval['status']}.")

    def _confirm(self, approval: Json, by: str) -> Flow[None]:
        """Approve and run one action: of two messages that say yes, one does."""
        identity = approval["approval_id"]
        shown = (self._shown or {}).get(identity)
        try:
            token = self._token_of(by)
            stands = yield from self._stored(
                lambda: approvals.approve(identity, by=by, revision=shown, token=token)
            )
        except DecisionRefused as error:
            yield from self._say(f"{_line(approval)} was not run: {error}")
            return
        except DecisionConflict as error:
            if _stands(error) != "approved":  # else another message was first, and reports it
                yield from self._say(f"{_line(approval)} was not run: {error}")
            return
        if stands["status"] == "awaiting":  # it takes several people
            yield from self._say(f"{_line(approval)} was not run yet: {progress(stands)}.")
            return
        try:
            done = yield from run(self.gate, identity)
        except AwaitRequired:
            raise
        except DecisionConflict as error:
            if error.code not in ("already_claimed", "token_used"):
                yield from self._say(f"{_line(approval)} was not run: {error}")
            return
        except Exception as error:  # of the tool, or of the gate: the person gets it either way
            yield from self._report_failure(approval, error)
            return
        yield from self._say(f"Done! {done.description}.")

    def _report_failure(self, approval: Json, error: Exception) -> Flow[None]:
        """Report the end of a call that raised."""
        how = "may have run; its outcome is unknown" if may_have_run(error) else "failed"
        why = f"{type(error).__name__}: {safe_str(error)}"
        yield from self._say(f"{_line(approval)} {how}: {why}")

    def _reject(self, approval: Json, by: str, reason: str) -> Flow[bool]:
        identity = approval["approval_id"]
        try:
            token = self._token_of(by)
            yield from self._stored(
                lambda: approvals.reject(identity, by=by, reason=reason, token=token)
            )
        except DecisionRefused as error:
            yield from self._say(f"{_line(approval)} was not cancelled: {error}")
            return False
        except DecisionConflict as error:
            if _stands(error) != "rejected":  # who says no must learn that it was too late
                yield from self._say(f"{_line(approval)} was not cancelled: {error}")
            return False
        return True

    def _token_of(self, by: str) -> str | None:
        """Return the token of the person who writes; None if the channel has none."""
        held: DecideToken = getattr(self.channel, "decide_token", None)
        return held(by) if callable(held) else held

    def _remove(self, numbers: set[int], waiting: Sequence[Json], by: str) -> Flow[None]:
        """Take actions off a list that is confirmed together, by their numbers."""
        for number in sorted(numbers):
            yield from self._reject(waiting[number - 1], by, "removed from the list")
        left = yield from self._pending()
        if left:
            yield from self._ask("", left)
        else:
            yield from self._say(CANCELLED)

    # ---- the agent

    def _process(self, message: str) -> Flow[None]:
        self.gate.note(message)
        self._shown = {}  # nothing that the agent is about to propose was shown
        with self.gate.turn() as turn, self.gate.batch() if self._is_batching else nullcontext():
            answer = yield FlowStep(partial(self._agent, message))
            if not (yield from self._is_good(turn, message, answer)):
                answer = yield FlowStep(partial(self._agent, message))
        waiting = (yield from self._pending()) if turn.is_pending else []
        if waiting:
            yield from self._ask(answer, waiting)
        else:
            yield from self._say(answer)

    def _is_good(self, turn: PendingTurn, message: str, answer: str) -> Flow[bool]:
        if self._evaluator is None:
            return True
        judged = yield from evaluate(self.gate, turn, self._evaluator, message, answer)
        self.last_evaluation = judged
        return judged.verdict is not False

    # ---- what is shown

    def _ask(self, text: str, waiting: Sequence[Json]) -> Flow[None]:
        question = Question(text, tuple(waiting))
        yield from self._note("message.outbound", text=f"{text}\n{question.prompt}")
        before = self._shown or {}
        # Before the question is sent: its answer may come while `ask` still waits for the channel.
        self._shown = {one["approval_id"]: one["revision"] for one in waiting}
        try:
            yield FlowStep(lambda: self.channel.ask(question))
        except BaseException:
            self._shown = before  # it may not have been shown
            raise

    def _say(self, text: str) -> Flow[None]:
        try:
            yield from self._note("message.outbound", text=text)
        except GateError as error:
            # The person gets the message all the same.
            yield from note_failure(self.gate, "message", error)
        yield FlowStep(lambda: self.channel.send(text))

    # ---- the store

    def _pending(self) -> Flow[list[Json]]:
        return (yield from self._stored(self.pending))

    def _note(self, kind: str, *, text: str, by: str = "") -> Flow[None]:
        event: Json = {
            "type": kind,
            "conversation": self.channel.name,
            "text": text,
            "agent": self.gate.agent,
            **({"by": by} if by else {}),
        }
        yield from self._stored(lambda: self.gate.decisions.note(event))

    def _stored(self, ask: Callable[[], T]) -> Flow[T]:
        """Call the store of decisions; in a thread if it is a server and an event loop runs."""
        made: T = yield FlowStep(ask, not self.gate.decisions.is_local)
        return made


def _removed(message: str, most: int) -> set[int]:
    """Return the numbers that a message takes off a list; none where it does not."""
    found = _REMOVE.fullmatch(message.strip())
    numbers = {int(one) for one in re.findall(r"\d+", found[1])} if found else set()
    return numbers if numbers <= set(range(1, most + 1)) else set()


def _stands(error: DecisionConflict) -> object:
    """Return the status that an approval has already; None for another conflict."""
    decision = error.details.get("decision")
    return decision.get("status") if isinstance(decision, Mapping) else None


def _line(approval: Json) -> str:
    """Return an action in one line, with a mark for what is not in the conversation."""
    flagged = [
        f"{one['name']} is not in the conversation"
        for one in approval.get("fields") or ()
        if one.get("flag") == "not_in_context"
    ]
    line = str(approval.get("description") or approval.get("tool"))
    return f"{line} [{'; '.join(flagged)}]" if flagged else line


def evaluate(
    gate: Gate, turn: PendingTurn, evaluator: Callable[..., V | Awaitable[V]], *arguments: Any
) -> Flow[_Evaluation[V]]:
    """Evaluate an answer; raises nothing but AwaitRequired.

    An answer that requests a confirmation is not evaluated: it has done nothing yet, so it would
    fail and be tried again for ever. If the evaluator raises, the answer passes, and an event
    records the failure.
    """
    if turn.is_pending:
        return _Evaluation(was_skipped=True)
    try:
        return _Evaluation((yield FlowStep(partial(evaluator, *arguments))))
    except AwaitRequired:
        raise
    except Exception as error:
        yield from note_failure(gate, "evaluator", error)
        return _Evaluation(error=error)


def note_failure(gate: Gate, what: str, error: BaseException) -> Flow[None]:
    """Record a failure as an event; if that fails, too, log a warning."""
    event = {"type": "failure", "action": what, "error": type(error).__name__, "agent": gate.agent}
    try:
        yield FlowStep(lambda: gate.decisions.note(event), not gate.decisions.is_local)
    except GateError as trouble:
        warn_once(
            f"gate {what}",
            "%s failed (%s), and so did recording that as an event: %s",
            what,
            safe_repr(error),
            trouble,
        )
