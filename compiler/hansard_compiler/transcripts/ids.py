"""Ids of transcripts: of conversations and of sub-agents, each a type of its own.

A conversation's id follows from its name, `gen_ai.conversation.id`: one that is ensured twice, in
whatever process, gets the same one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import ClassVar, Self

from hansard_compiler.transcripts.errors import InvalidConversationId

_DIGITS = re.compile(r"[0-9a-f]{32}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _LogId:
    """An id with a prefix for its kind; raises InvalidConversationId for any other text."""

    digest: bytes

    prefix: ClassVar[str]
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.digest, bytes) or len(self.digest) != 16:
            raise InvalidConversationId(str(self.digest), self.kind)

    def __str__(self) -> str:
        return f"{self.prefix}{self.digest.hex()}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the id that a text is; ids of runs and steps, and names, are refused."""
        if not isinstance(text, str):
            raise InvalidConversationId(repr(text), cls.kind)
        digits = text.removeprefix(cls.prefix)
        if digits == text or not _DIGITS.fullmatch(digits):
            raise InvalidConversationId(text, cls.kind)
        return cls(bytes.fromhex(digits))


class ConversationId(_LogId):
    """Of a conversation: `conv_` and 32 hex digits."""

    __slots__ = ()
    prefix = "conv_"
    kind = "conversation"

    @classmethod
    def named(cls, name: str) -> ConversationId:
        """Return the id of the conversation that spans call `name`."""
        return cls(
            sha256(b"hansard.conversation\0" + name.encode("utf-8", "replace")).digest()[:16]
        )


class BranchId(_LogId):
    """Of a sub-agent's own log: `br_` and 32 hex digits."""

    __slots__ = ()
    prefix = "br_"
    kind = "sub-agent"


LogId = ConversationId | BranchId


def parse_log_id(text: str) -> LogId:
    """Return the id of either kind that a text is; raises InvalidConversationId."""
    return BranchId.parse(text) if text.startswith(BranchId.prefix) else ConversationId.parse(text)
