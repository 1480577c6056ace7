"""Transcripts as programs send them: bodies of the API, and what they become."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from hansard_compiler.compile.models import Model, TopLevel
from hansard_compiler.models.json_schema import A_NUMBER
from hansard_compiler.transcripts.entry import CLIP_BYTES, MESSAGE_BYTES, MIN_CLIP_BYTES, NewMessage
from hansard_compiler.transcripts.messages import MessageSchema
from hansard_compiler.transcripts.views import EndStatus, MarkKind

Name = Annotated[str, Field(min_length=1, max_length=4096)]
By = Annotated[str, Field(max_length=4096)]
_STEP = r"^[0-9a-f]{32}-[0-9a-f]{16}$"


class EnsureConversation(TopLevel):
    """The conversation that spans call so: `gen_ai.conversation.id`."""

    conversation: Name


class MessageInput(Model):
    """A message with its parts, or in a short form: `{"role": "user", "content": "…"}`."""

    message: Annotated[dict[str, Any], MessageSchema()]
    message_id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None
    step_id: Annotated[str, Field(pattern=_STEP)] | None = None
    is_evidence: bool = False

    def new(self) -> NewMessage:
        trace_id, _, span_id = (self.step_id or "").partition("-")
        return NewMessage(
            message=self.message,
            id=bytes.fromhex(self.message_id) if self.message_id else None,
            trace_id=bytes.fromhex(trace_id) or None,
            span_id=bytes.fromhex(span_id) or None,
            is_evidence=self.is_evidence,
        )


class AppendMessages(TopLevel):
    """All of these, or none."""

    messages: Annotated[list[MessageInput], Field(min_length=1, max_length=1000)]
    clip_bytes: Annotated[int, Field(ge=MIN_CLIP_BYTES, le=MESSAGE_BYTES), A_NUMBER] = CLIP_BYTES


class FoldTranscript(TopLevel):
    """A summary that stands for all there is; `expected_head` is the last position it has seen."""

    summary: Annotated[str, Field(min_length=1, max_length=MESSAGE_BYTES)]
    expected_head: Annotated[int, Field(ge=0), A_NUMBER] | None = None
    by: By = ""


class MarkMessage(TopLevel):
    """What is shown in place of a message from now on; the row stays as it is."""

    position: Annotated[int, Field(ge=0, lt=1 << 62), A_NUMBER]
    kind: MarkKind = "redacted"
    reason: Name
    superseded_by: Annotated[int, Field(ge=0, lt=1 << 62), A_NUMBER] | None = None
    by: By = ""


class CheckSummary(TopLevel):
    """A summary that is thought of; without one the newest fold is looked at."""

    summary: Annotated[str, Field(max_length=MESSAGE_BYTES)] | None = None


class SpawnBranch(TopLevel):
    """A sub-agent that begins here."""

    name: Name


class EndBranch(TopLevel):
    status: EndStatus = "done"
