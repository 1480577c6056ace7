"""What the routes of memory answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from hansard_compiler.models.memory import Change
from hansard_store.bodies import Answer, Body, Description, Page
from hansard_store.memory.maintenance.reviewed_supersessions import SupersessionBody
from hansard_store.memory.records import MemoryConflictBody
from hansard_store.memory.rows import AccessBody, MemoryBody


class Written(Answer):
    """What became of a write; `current_memory_id` is the record that was not superseded."""

    outcome: Literal["current", "superseded", "review", "repeat"]
    change: Annotated[Change, Description("what it is to the memory that stood before")]
    superseded: list[str]
    conflicts: list[MemoryConflictBody]
    current_memory_id: str | None
    memory: MemoryBody
    step_id: str | None


class Read(Answer):
    """What was read, and the same as `memory_records` of a compile, with its scope."""

    items: list[MemoryBody]
    memory_records: list[dict[str, Any]]
    scope: dict[str, Any]
    step_id: str | None


class Changed(Answer):
    """A record after somebody decided on it."""

    memory: MemoryBody
    step_id: NotRequired[str | None]


class Memories(Page):
    """Records, the last written first."""

    items: list[MemoryBody]


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

    memory: MemoryBody
    conflicts: list[MemoryConflictBody]
    versions: list[MemoryBody]
    supersessions: list[SupersessionBody]
    written_by: list[AccessBody]
    read_by: list[AccessBody]
    used_in: list[Use]
