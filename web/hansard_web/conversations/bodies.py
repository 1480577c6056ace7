"""Conversations as bodies of the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

import apsw

from hansard_store.bodies import Answer, Body, Description, Page, body_of, milliseconds
from hansard_store.content.messages import MessageRef, read_messages
from hansard_store.runs.conversations import ConversationItem
from hansard_web.api.bodies import TokensBody, tokens_body
from hansard_web.api.values import dump
from hansard_web.conversations.messages import RunCalls
from hansard_web.run_page.conversation import TalkCall
from hansard_web.steps.bodies import message_body

_MOST_BYTES: Final = 4 * 1024 * 1024  # of the parts of messages, in one answer


class ConversationItemBody(Body):
    conversation_id: str
    last_run_id: str
    runs: int
    failed_runs: Annotated[int, Description("runs of status error")]
    started_at: str
    ended_at: str
    duration_ms: Annotated[float, Description("from the first start to the latest end")]
    model_calls: int
    tool_calls: int
    error_count: Annotated[int, Description("steps that failed")]
    tokens: TokensBody | None
    cost_usd: float | None
    user_id: str | None
    agents: list[str]
    first_input: str | None
    last_output: str | None


class ConversationList(Page):
    items: list[ConversationItemBody]


class Conversation(ConversationItemBody, Answer):
    transcript_id: Annotated[str | None, Description("of /v1/transcripts; null: none is stored")]


class ConversationMessage(Body):
    """A message with the model call that it was sent with, or that it answers."""

    step_id: Annotated[str, Description("of the model call; its output has the messages whole")]
    agent: str | None
    direction: Literal["input", "output"]
    role: str
    name: str | None
    parts: Annotated[
        list[dict[str, Any]] | None,
        Description("null: the answer has 4 MiB already; the step has them"),
    ]
    hash: str


class ConversationRun(Body):
    """The messages of a run that no run before it had, in order."""

    run_id: str
    more_calls: Annotated[int, Description("further model calls, which only the run has")]
    messages: list[ConversationMessage]


class ConversationMessages(Page):
    items: list[ConversationRun]


class MessagesReader:
    """Reads the messages of one answer, up to a number of bytes in all."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._room = _MOST_BYTES

    def run_body(self, found: RunCalls) -> ConversationRun:
        """Return the new messages of a run."""
        return ConversationRun(
            run_id=found.run.run_id,
            more_calls=found.more_calls,
            messages=[message for one in found.calls for message in self._of_call(one)],
        )

    def _of_call(self, one: TalkCall) -> Iterator[ConversationMessage]:
        for ref in one.new:
            yield self._message(one, ref, "input")
        for ref in one.answer:
            yield self._message(one, ref, "output")

    def _message(
        self, one: TalkCall, ref: MessageRef, direction: Literal["input", "output"]
    ) -> ConversationMessage:
        name, parts = None, None
        if self._room > 0:
            body = message_body(read_messages(self._connection, {ref.text})[ref.text])
            self._room -= len(dump(body["parts"]))
            if self._room >= 0:
                name, parts = body.get("name"), body["parts"]
        return ConversationMessage(
            step_id=one.call.step_id,
            agent=one.call.agent_name,
            direction=direction,
            role=ref.role,
            name=name,
            parts=parts,
            hash=ref.hash.hex(),
        )


def conversation_body(item: ConversationItem) -> ConversationItemBody:
    """Return a conversation with what its runs used."""
    return body_of(
        ConversationItemBody,
        item,
        tokens=tokens_body(item.tokens),
        duration_ms=milliseconds(item.duration_ns) or 0.0,
    )
