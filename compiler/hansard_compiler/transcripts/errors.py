"""What transcripts refuse, each in a sentence without content.

TranscriptError
├── InvalidConversationId     text that is no id of a conversation or a sub-agent      (HTTP 400)
├── InvalidMessage            what is no message, or too large for one                 (HTTP 400)
├── MessageIdUsed         the id of a message was used for another one             (HTTP 409)
├── ResultWithoutCall     a tool result that answers no open call of its log       (HTTP 409)
├── HeadStale             a message was appended since the fold's source was read  (HTTP 409)
├── NothingToFold         a fold of nothing, or across an open tool call           (HTTP 409)
├── TranscriptWithheld    the retention mode keeps no content                      (HTTP 409)
└── UndecodableMessage    a stored row is no message: names conversation, position (HTTP 500)
"""

from __future__ import annotations

from collections.abc import Sequence

from hansard_compiler.errors import HansardError


class TranscriptError(HansardError):
    """A transcript cannot do what was requested."""

    code = "transcript_error"


class InvalidConversationId(TranscriptError, ValueError):
    """Text that names neither a conversation nor a sub-agent."""

    code = "invalid_conversation_id"

    def __init__(self, value: str, kind: str) -> None:
        super().__init__(f"{value[:80]!r} is no id of a {kind}")


class InvalidMessage(TranscriptError, ValueError):
    """What is no message, or too large for one."""

    code = "invalid_message"


class MessageIdUsed(TranscriptError):
    """An id stands for one message for ever."""

    code = "message_id_used"

    def __init__(self, message_id: str) -> None:
        super().__init__(f"the id {message_id} is that of another message")


class ResultWithoutCall(TranscriptError):
    """A tool result that answers no open call of its log: no provider takes it, now or later."""

    code = "orphan_tool_result"

    def __init__(self, call_ids: Sequence[str | None]) -> None:
        named = ", ".join("one without an id" if one is None else repr(one) for one in call_ids[:3])
        super().__init__(
            f"{len(call_ids)} tool result(s) answer no open call ({named[:200]}): append the "
            "assistant's message that calls the tool before its result, and one result a call"
        )
        self.call_ids = tuple(call_ids)


class HeadStale(TranscriptError):
    """A fold would stand for messages that its summary never saw."""

    code = "head_stale"

    def __init__(self, *, expected: int, found: int) -> None:
        super().__init__(
            f"the last message is at position {found}, not {expected}: "
            "read what was appended, then fold again"
        )
        self.expected = expected
        self.found = found


class NothingToFold(TranscriptError):
    """There is nothing that a summary could stand for."""

    code = "nothing_to_fold"


class TranscriptWithheld(TranscriptError):
    """A transcript without content would be a false memory, so there is none."""

    code = "transcript_withheld"

    def __init__(self) -> None:
        super().__init__(
            "the retention mode is metadata_only, which keeps no content; a transcript is content. "
            "Use hansard.transcripts.LocalTranscripts, or another mode"
        )


class UndecodableMessage(TranscriptError):
    """A row that is no message any more, or not yet."""

    code = "message_undecodable"

    def __init__(self, log: str, position: int, why: str) -> None:
        super().__init__(f"{log}: the message at position {position} cannot be decoded: {why}")
        self.log = log
        self.position = position
        self.why = why
