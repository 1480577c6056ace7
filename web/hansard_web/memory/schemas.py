"""What the routes of memory answer, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from hansard_compiler.models.memory import Change, Standing, Writer
from hansard_store.principals.model import Method
from hansard_web.api.schemas import Answer, Body, Page


class Ended(Body):
    """Who said that a record does not hold, and why."""

    at: str
    by: str
    method: Method
    reason: str


class Memory(Body):
    """A version of a record. `content` is null after a purge."""

    memory_id: str
    memory_type: str
    layer: Literal["working", "durable"]
    subject: str
    attribute: str
    content: dict[str, Any] | str | None
    state: Standing
    version: int
    namespace: dict[str, str]
    scope: dict[str, Any]
    run_id: str | None = Field(description="of working memory: whose it is")
    chain: str | None
    slot: str | None
    confidence: float
    freshness_at: str
    expires_at: str | None
    created_at: str
    last_read_at: str | None
    reads: int
    tags: list[str]
    metadata: dict[str, Any]
    writer: Writer
    written_by: str | None = Field(description="who wrote it, in the words of the sender")
    written_method: Literal["token", "session", "claimed"] | None = Field(
        description="how `written_by` is known; null without a name"
    )
    written_principal: str | None = Field(
        description="the authenticated principal that sent it; null where there was none"
    )
    source_run_id: str | None
    source_step_ids: list[str]
    source_run_deleted: bool = Field(description="the run it comes from was deleted")
    approval_id: str | None
    superseded_by: str | None
    contests: str | None = Field(description="what it would supersede, if a person accepts it")
    ended: Ended | None
    removed: list[str] = Field(description="rule:fingerprint of every secret cut out")
    content_hash: str
    freshness_ns: str
    created_ns: str
    expires_ns: str | None


class MemoryConflict(Body):
    """A record that stands and contradicts this one; not certain: they may both hold."""

    memory_id: str
    difference: str
    is_certain: bool


class DecisionTaken(Body):
    """Who decided, and how that is known."""

    by: str
    method: Method
    at: str


class TakenBack(DecisionTaken):
    """Who took a supersession back, and why."""

    reason: str


class Supersession(Body):
    """One record superseded by another, or proposed to be, and by whom or what."""

    older: str | None
    newer: str | None
    cause: Literal["version", "accepted", "contradiction", "correction"]
    state: Literal["proposed", "refused", "lapsed", "applied", "undone"]
    rationale: str
    score: float | None = Field(description="0 to 1, of the classifier or embedder")
    judge: str = Field(description="name of the classifier, embedder or writer")
    at: str
    step_id: str | None
    task_id: str | None = Field(description="the task for review that proposed it")
    decision: DecisionTaken | None
    undone: TakenBack | None


class Written(Answer):
    """What became of a write; `current_memory_id` is the record that was not superseded."""

    outcome: Literal["current", "superseded", "review", "repeat"]
    change: Change = Field(description="what it is to the memory that stood before")
    superseded: list[str]
    conflicts: list[MemoryConflict]
    current_memory_id: str | None
    memory: Memory
    step_id: str | None


class Read(Answer):
    """What was read, and the same as `memory_records` of a compile, with its scope."""

    items: list[Memory]
    memory_records: list[dict[str, Any]]
    scope: dict[str, Any]
    step_id: str | None


class Changed(Answer):
    """A record after somebody decided on it."""

    memory: Memory
    step_id: str | None = None


class Memories(Page):
    """Records, the last written first."""

    items: list[Memory]


class Access(Body):
    """One read or write."""

    kind: str
    at: str
    memory_id: str | None
    run_id: str | None
    step_id: str | None
    agent: str | None
    origin: str
    run_deleted: bool


class Use(Body):
    """What one compile did with a record."""

    compilation_id: str
    run_id: str
    step_id: str
    at: str
    decision: str
    reason: str
    tokens_before: int | None
    tokens_after: int | None


class MemoryDetail(Answer):
    """A record with its versions, who touched it, and where it was used."""

    memory: Memory
    conflicts: list[MemoryConflict]
    versions: list[Memory]
    supersessions: list[Supersession]
    written_by: list[Access]
    read_by: list[Access]
    used_in: list[Use]
