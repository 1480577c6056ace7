"""Memory as it is stored: a version of a record, and who touched it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hansard_compiler.calls import Json
from hansard_store.bodies import Body, body_of

AccessKind = Literal[
    "read", "candidate", "write", "repeat", "accept", "invalidate", "expire", "purge",
    "supersede", "unsupersede",
]  # fmt: skip
Origin = Literal["sdk", "api", "cli", "page"]


@dataclass(frozen=True, slots=True)
class Kept:
    """What is stored of what was to be written: secrets cut out."""

    subject: str
    attribute: str
    content: Json | str
    scope: Json
    metadata: Json
    tags: tuple[str, ...]
    removed: tuple[str, ...]  # `rule:fingerprint` of every secret
    hmac: bytes

    @property
    def searched(self) -> str:
        """The words it is found by."""
        return "\n".join((self.subject, self.attribute, *words_of(self.content), *self.tags))


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A record that is to be written. Times are Unix nanoseconds."""

    memory_id: bytes
    key: bytes
    older_key: bytes | None  # what 0.1 gave a record without an attribute, that repeats are found
    memory_type: str
    namespace: tuple[str, str, str]  # project, user, agent; "" for none
    trace_id: bytes | None  # of working memory
    chain: bytes | None
    slot: str | None
    confidence: float
    freshness_ns: int | None  # None: now
    expires_ns: int | None
    writer: str
    written_by: str | None
    source_trace: bytes | None
    source_steps: tuple[str, ...]
    approval_id: str | None
    replaces: bytes | None
    retained: Kept
    written_method: str | None = None  # how `written_by` is known: token session claimed
    written_principal: str | None = None  # that sent it; None: not authenticated


class MemoryConflictBody(Body):
    """A record that stands and contradicts this one; not certain: they may both hold."""

    memory_id: str
    difference: str
    is_certain: bool


@dataclass(frozen=True, slots=True)
class MemoryConflict:
    """A record that contradicts another one, or may."""

    memory_id: str
    difference: str  # value, number or negation
    confidence: float
    is_certain: bool  # False: they may both hold

    def json(self) -> MemoryConflictBody:
        return body_of(MemoryConflictBody, self)


@dataclass(frozen=True, slots=True)
class Ended:
    """Who ended a record, and why."""

    time_ns: int
    by: str
    reason: str
    method: str | None = None  # how `by` is known; None: not on record


@dataclass(frozen=True, slots=True)
class Memory:
    """A version of a record. `subject` and `content` are gone after a purge."""

    id: int
    memory_id: str
    line: int
    version: int
    memory_type: str
    project: str
    user: str
    agent: str
    run_id: str | None
    chain: str | None  # step id
    slot: str | None
    state: str
    confidence: float
    freshness_ns: int
    expires_ns: int | None
    created_ns: int
    writer: str
    written_by: str | None
    source_run_id: str | None
    source_steps: tuple[str, ...]
    source_run_deleted: bool  # the run it comes from was deleted
    approval_id: str | None
    superseded_by: str | None
    contests: str | None
    ended: Ended | None
    content_hmac: str
    reads: int
    last_read_ns: int
    subject: str
    attribute: str
    content: Json | str | None
    scope: Mapping[str, Any]
    metadata: Mapping[str, Any]
    removed: tuple[str, ...]
    tags: tuple[str, ...]
    written_method: str | None = None  # how `written_by` is known; None: no name
    written_principal: str | None = None  # that sent it; None: not authenticated, or not on record

    @property
    def is_working(self) -> bool:
        return self.memory_type == "working"

    @property
    def namespace(self) -> dict[str, str]:
        """The parts that are named."""
        named = {"project": self.project, "user": self.user, "agent": self.agent}
        return {key: value for key, value in named.items() if value}

    @property
    def step_id(self) -> str | None:
        """The step that it was first written from."""
        return self.source_steps[0] if self.source_steps else None


@dataclass(frozen=True, slots=True)
class Toucher:
    """Who touches memory: the step, the agent, and the origin of the request."""

    origin: Origin
    run_id: str | None = None
    step_id: str | None = None
    agent: str | None = None

    @property
    def trace_id(self) -> bytes | None:
        digits = self.run_id or (self.step_id or "")[:32]
        return bytes.fromhex(digits) if digits else None

    @property
    def span_id(self) -> bytes | None:
        return bytes.fromhex(self.step_id[33:49]) if self.step_id else None


@dataclass(frozen=True, slots=True)
class Access:
    """One read or write."""

    id: int
    time_ns: int
    kind: str
    memory_id: str | None  # None: a read that found nothing
    run_id: str | None
    step_id: str | None
    agent: str | None
    origin: str
    run_is_gone: bool


def words_of(content: Any) -> Sequence[str]:
    """Return the texts of a content, keys included."""
    match content:
        case str():
            return (content,)
        case Mapping():
            return [word for key, one in content.items() for word in (str(key), *words_of(one))]
        case list() | tuple():
            return [word for one in content for word in words_of(one)]
        case None:
            return ()
    return (str(content),)
