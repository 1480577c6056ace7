"""A conversation in which people confirm what an agent is about to change.

    chat = hansard.chat.ChatGate(channel, agent=answer, tools=crm_tools)
    chat.handle("Create a contact for Maria Garcia, maria@acme.com")   # asks
    chat.handle("yes")                                                 # runs it: "Done! …"

One action waits a channel, for five minutes; a newer one takes its place. The reply is looked at
before anything else: yes runs what waits, no cancels it, and any other message cancels it and is
then answered as usual. Whether that is typed or pressed on a button is the channel's affair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias

from hansard import approvals
from hansard.capture import safe_str
from hansard.gating.arguments import Json
from hansard.gating.errors import DecisionConflict, GateError
from hansard.gating.gate import Gate, Tools
from hansard.gating.turns import Evaluation, Turn, evaluate, tell_failure

EXPIRES_S: Final = 300.0
PROMPT: Final = '-- reply "yes" to confirm or "no" to cancel.'
CANCELLED: Final = "Cancelled."

Verdict: TypeAlias = Literal["yes", "no", "other"]
_YES, _NO = frozenset({"yes", "y"}), frozenset({"no", "n"})
_REMOVE: Final = re.compile(r"(?:remove|without|drop)\s+((?:\d+[\s,]*)+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked: the agent's own words, and what would run."""

    text: str
    actions: Sequence[Json] = field(repr=False)  # approvals, as the API has them

    @property
    def prompt(self) -> str:
        """The part that no model writes: each action as it would run, and how to answer."""
        told = [_line(one) for one in self.actions]
        if len(told) == 1:
            return f"{told[0]}\n{PROMPT}"
        listed = "\n".join(f"{number}. {line}" for number, line in enumerate(told, 1))
        return f'{listed}\n{PROMPT} "remove 2" takes one off the list.'


class Channel(Protocol):
    """Where a conversation takes place: a terminal, a messenger, a web page."""

    name: str  # the channel's id, one a conversation

    def send(self, text: str) -> None:
        """Show a text."""

    def ask(self, question: Question) -> None:
        """Show a question: with its prompt to be answered in words, or with buttons."""


@dataclass(slots=True)
class TextChannel:
    """A channel of plain text: the prompt says what to reply."""

    name: str
    write: Callable[[str], object]

    def send(self, text: str) -> None:
        self.write(text)

    def ask(self, question: Question) -> None:
        self.write("\n\n".join(part for part in (question.text, question.prompt) if part))


def verdict_of(reply: str) -> Verdict:
    """Return what a reply to a confirmation means: yes or y, no or n, and nothing like them."""
    word = reply.strip().casefold()
    if word in _YES:
        return "yes"
    return "no" if word in _NO else "other"


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
        agent: Callable[[str], str],
        tools: Tools = (),
        evaluator: Callable[[str, str], bool] | None = None,
        expires: float = EXPIRES_S,
        batch: bool = False,
        **options: Any,
    ) -> None:
        self.channel = channel
        self.gate = Gate(
            tools=tools, channel=channel.name, one_per_channel=True, expires=expires, **options
        )
        self.last_evaluation: Evaluation[bool] | None = None
        self._is_batching = batch
        self._asked: set[str] | None = None  # approvals that were shown; None since the start
        self._agent = agent
        self._evaluator = evaluator

    # ---- messages

    def handle(self, message: str, *, by: str = "") -> None:
        """Take a message of a person: the answer to what waits, or something new."""
        with self.gate:
            try:
                self._note("message.inbound", by=by, text=message)
                if not self._is_answer(message, by):
                    self._process(message)
            except GateError as error:
                self._say(f"Nothing was done: {error}")

    def press(self, approval_id: str, verdict: Literal["yes", "no"], *, by: str = "") -> None:
        """Take the answer of a button, which names what it is about."""
        with self.gate:
            try:
                waiting = [one for one in self.pending() if one["approval_id"] == approval_id]
                if waiting:
                    self._answered(verdict, waiting, by)
                else:
                    self._came_late(approval_id, verdict)
            except GateError as error:
                self._say(f"Nothing was done: {error}")

    def resume(self) -> None:
        """Run what was approved elsewhere, or before a restart, and tell of it."""
        with self.gate:
            for done in approvals.run_decided(channel=self.channel.name):
                self._say(f"Done! {done.description}.")

    def pending(self) -> list[Json]:
        """Return what waits in this channel, in the order in which it is listed."""
        found = self.gate.decisions.approvals(
            status="awaiting", channel=self.channel.name, limit=500
        )
        return found[::-1]

    # ---- answers

    def _is_answer(self, message: str, by: str) -> bool:
        """Whether the message was all about what waits; whatever it was, that waits no more."""
        waiting = self.pending()
        if not waiting:
            return False
        verdict = verdict_of(message)
        if verdict == "yes" and not self._were_shown(waiting):
            self._ask("There is something new, which was not shown yet.", waiting)
            return True
        if verdict == "other" and len(waiting) > 1 and self._is_removal(message, waiting, by):
            return True
        self._answered(verdict, waiting, by)
        return verdict != "other"

    def _were_shown(self, waiting: Sequence[Json]) -> bool:
        """Whether a person has seen all of it; what an earlier process asked counts as seen."""
        return self._asked is None or {one["approval_id"] for one in waiting} <= self._asked

    def _answered(self, verdict: Verdict, waiting: Sequence[Json], by: str) -> None:
        if verdict == "yes":
            for approval in waiting:
                self._confirm(approval, by)
            return
        reason = "cancelled" if verdict == "no" else "cancelled by another message"
        told = [one for one in waiting if self._reject(one, by, reason)]
        if verdict == "no" and told:
            self._say(CANCELLED)
        elif told:
            self._say(f"Cancelled: {'; '.join(_line(one) for one in told)}.")

    def _came_late(self, approval_id: str, verdict: Verdict) -> None:
        """Tell whoever pressed a button that does nothing any more; not who pressed it twice."""
        approval = approvals.get(approval_id)
        done, stands = ("run", "approved") if verdict == "yes" else ("cancelled", "rejected")
        if approval.get("channel") == self.channel.name and approval["status"] != stands:
            self._say(f"{_line(approval)} was not {done}: it is {approval['status']}.")

    def _confirm(self, approval: Json, by: str) -> None:
        """Approve and run one action: of two messages that say yes, one does."""
        try:
            approvals.approve(approval["approval_id"], by=by)
        except DecisionConflict as error:
            if _stands(error) != "approved":  # else another message was first, and tells of it
                self._say(f"{_line(approval)} was not run: {error}")
            return
        try:
            done = self.gate.run(approval["approval_id"])
        except DecisionConflict as error:
            if error.code not in ("already_claimed", "token_used"):
                self._say(f"{_line(approval)} was not run: {error}")
            return
        except Exception as error:  # of the tool, or of the gate: either way the person is told
            self._say(f"{_line(approval)} failed: {type(error).__name__}: {safe_str(error)}")
            return
        self._say(f"Done! {done.description}.")

    def _reject(self, approval: Json, by: str, reason: str) -> bool:
        try:
            approvals.reject(approval["approval_id"], by=by, reason=reason)
        except DecisionConflict as error:
            if _stands(error) != "rejected":  # whoever says no must learn that it was too late
                self._say(f"{_line(approval)} was not cancelled: {error}")
            return False
        return True

    def _is_removal(self, message: str, waiting: Sequence[Json], by: str) -> bool:
        """Take actions off a list that is confirmed together, by their numbers."""
        found = _REMOVE.fullmatch(message.strip())
        numbers = {int(one) for one in re.findall(r"\d+", found[1])} if found else set()
        if not numbers or not numbers <= set(range(1, len(waiting) + 1)):
            return False
        for number in sorted(numbers):
            self._reject(waiting[number - 1], by, "removed from the list")
        left = self.pending()
        if left:
            self._ask("", left)
        else:
            self._say(CANCELLED)
        return True

    # ---- the agent

    def _process(self, message: str) -> None:
        self.gate.note(message)
        with self.gate.turn() as turn, self.gate.batch() if self._is_batching else nullcontext():
            answer = self._agent(message)
            if not self._is_good(turn, message, answer):
                answer = self._agent(message)
        waiting = self.pending() if turn.is_pending else []
        if waiting:
            self._ask(answer, waiting)
        else:
            self._say(answer)

    def _is_good(self, turn: Turn, message: str, answer: str) -> bool:
        if self._evaluator is None:
            return True
        self.last_evaluation = evaluate(self.gate, turn, self._evaluator, message, answer)
        return self.last_evaluation.verdict is not False

    # ---- what is shown

    def _ask(self, text: str, waiting: Sequence[Json]) -> None:
        question = Question(text, tuple(waiting))
        self._note("message.outbound", text=f"{text}\n{question.prompt}")
        self._asked = {one["approval_id"] for one in waiting}
        self.channel.ask(question)

    def _say(self, text: str) -> None:
        try:
            self._note("message.outbound", text=text)
        except GateError as error:
            tell_failure(self.gate, "message", error)  # the person is told all the same
        self.channel.send(text)

    def _note(self, kind: str, **told: str) -> None:
        self.gate.decisions.note(
            {"type": kind, "conversation": self.channel.name, **told, "agent": self.gate.agent}
        )


def _stands(error: DecisionConflict) -> object:
    """Return how an approval stands that was decided already; None where that is not the matter."""
    decision = error.details.get("decision")
    return decision.get("status") if isinstance(decision, Mapping) else None


def _line(approval: Json) -> str:
    """Return an action in one line, with what nobody mentioned marked."""
    flagged = [
        f"{one['name']} is not in the conversation"
        for one in approval.get("fields") or ()
        if one.get("flag") == "not_in_context"
    ]
    told = str(approval.get("description") or approval.get("tool"))
    return f"{told} [{'; '.join(flagged)}]" if flagged else told
