"""Memory as it is requested: what is written, read and ended, by whom, and where it belongs.

The same models stand before the HTTP API, the command line and embedded mode. Who may write is
a closed list: what a model says lands in durable memory only through one of these writers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    AwareDatetime,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from hansard_compiler.compile.config import PIECES, SCORER_WORDS, scorer_name
from hansard_compiler.compile.models import Json, MemoryType, Model, Share, TopLevel, Utc
from hansard_compiler.models.json_schema import (
    A_NUMBER,
    DATE_TIME,
    Schema,
    any_of,
    both,
    having,
    left_out,
)

Writer = Literal[
    "app", "approved_tool_output", "human_approved_summary", "post_step_summarizer"
]  # fmt: skip
Slot = Literal[
    "task_summary", "plan", "open_questions", "temporary_facts", "tool_outputs", "artifacts"
]  # fmt: skip
# What a write does to what stands: nothing does, it is replaced, denied, or stays as it is.
Change = Literal["add", "update", "delete", "ignore"]
Standing = Literal["current", "superseded", "review", "invalidated", "expired", "purged"]

SLOTS: Final[Mapping[Slot, str]] = {
    "task_summary": "active task summary",
    "plan": "current plan",
    "open_questions": "open questions",
    "temporary_facts": "temporary facts",
    "tool_outputs": "recent tool outputs",
    "artifacts": "current artifact map",
}
# What is believed of a record whose writer tells no confidence.
CONFIDENCE: Final[Mapping[Writer, float]] = {
    "human_approved_summary": 0.9,
    "app": 0.8,
    "approved_tool_output": 0.7,
    "post_step_summarizer": 0.5,
}
# A newer record that is less trusted by more than this waits for a person (as in a compile:
# `CompileConfig.supersede_trust_gap`).
TRUST_GAP: Final = 0.3
MOST_READ: Final = 200
EXTERNAL_CONFIDENCE: Final = 0.0  # of what came from outside: nobody vouches for it

RunId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
StepId: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[0-9a-f]{32}-[0-9a-f]{16}(\.server)?$")
]
MemoryId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8,32}$")]
Name: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Moment: TypeAlias = Annotated[
    Utc, AfterValidator(lambda at: _countable(at)), WithJsonSchema(DATE_TIME)
]
Subject: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=512)]
Reason: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]


class Namespace(Model):
    """Whose memory: what is left out is not narrowed."""

    project: Name | None = None
    user: Name | None = None
    agent: Name | None = None

    @property
    def parts(self) -> tuple[str, str, str]:
        """Project, user and agent; "" for each that is left out."""
        return self.project or "", self.user or "", self.agent or ""

    @property
    def scope(self) -> dict[str, str]:
        """The namespace as the scope of a context item, or of a compile."""
        return {key: value for key, value in self.model_dump().items() if value}


class MemoryActor(TopLevel):
    """Who does something with memory, and in which step."""

    run_id: RunId | None = None
    step_id: StepId | None = None
    agent: Name | None = None

    @model_validator(mode="after")
    def _of_one_run(self) -> Self:
        if self.run_id and self.step_id and not self.step_id.startswith(self.run_id):
            raise ValueError("step_id is not of run_id")
        return self

    @property
    def run(self) -> str | None:
        """The run, by itself or as the step tells it."""
        return self.run_id or (self.step_id or "")[:32] or None


_NOBODY: Final[Schema] = left_out("project", "user", "agent")
_SOMEBODY: Final[Schema] = {"anyOf": [having(part) for part in ("project", "user", "agent")]}
_ONE_END: Final = (left_out("expires_at"), left_out("ttl_s"))
_WORKING: Final = [
    both(
        having("slot", run, memory_type={"const": "working"}),
        {"properties": {"namespace": _NOBODY}},
        end,
    )
    for run in ("run_id", "step_id")
    for end in _ONE_END
]
_DURABLE: Final = [
    both(
        having("subject", memory_type={"not": {"const": "working"}}, namespace=_SOMEBODY),
        left_out("slot", "chain"),
        end,
    )
    for end in _ONE_END
]


class WriteMemory(MemoryActor):
    """Write one record. A newer one under the same namespace, type, subject and attribute
    supersedes the older; of working memory, one in the same slot. One without an attribute
    supersedes nothing: what it contradicts is named in the answer.
    """

    model_config = ConfigDict(json_schema_extra=any_of(*_WORKING, *_DURABLE))

    writer: Writer
    memory_type: MemoryType
    subject: Subject | None = None  # only working memory goes without: its slot says what it is
    attribute: Annotated[str, StringConstraints(max_length=256)] = ""  # which fact about it
    content: Json | Annotated[str, StringConstraints(min_length=1)]
    namespace: Namespace = Namespace()
    slot: Slot | None = None
    chain: StepId | None = None  # the step at the head of the chain; None: the whole run
    by: Name | None = None  # who writes, in the words of the program
    confidence: Share | None = None
    freshness_ts: Moment | None = None  # as of when it is so; None: now
    expires_at: Moment | None = None
    ttl_s: Annotated[int, Field(gt=0, le=5 * 10**9), A_NUMBER] | None = None
    tags: Annotated[list[Name], Field(max_length=32)] = Field(default=[])
    scope: Json = Field(default={})
    metadata: Json = Field(default={})
    source_run_id: RunId | None = None  # None: the run that writes
    source_step_ids: Annotated[list[StepId], Field(max_length=64)] = Field(default=[])
    approval_id: Name | None = None
    replaces: MemoryId | None = None  # written only while this one is still current

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.expires_at is not None and self.ttl_s is not None:
            raise ValueError("give expires_at or ttl_s, not both")
        (self._check_working if self.is_working else self._check_durable)()
        return self

    def _check_working(self) -> None:
        if self.slot is None or self.run is None:
            raise ValueError("working memory needs run_id and slot")
        if any(self.namespace.parts):
            raise ValueError("working memory belongs to its run; it has no namespace")
        if self.chain is not None and not self.chain.startswith(self.run):
            raise ValueError("chain is not a step of run_id")

    def _check_durable(self) -> None:
        if self.slot is not None or self.chain is not None:
            raise ValueError("slot and chain are for memory_type working")
        if self.subject is None:
            raise ValueError("durable memory needs a subject")
        if not any(self.namespace.parts):
            raise ValueError("durable memory needs a namespace: project, user or agent")

    @property
    def is_working(self) -> bool:
        return self.memory_type == "working"


_WHOSE: Final = [
    having(namespace=_SOMEBODY),
    *(
        both(having(run), {"properties": {"namespace": _NOBODY}})
        for run in ("run_id", "step_id", "of_run")
    ),
]


class ReadMemory(MemoryActor):
    """Read what is current; all filters must be met.

    With a run and without a namespace it is the run's working memory; with a namespace, durable
    memory: records of the project, the user and the agent named, and those that name none.
    """

    model_config = ConfigDict(json_schema_extra=any_of(*_WHOSE))

    namespace: Namespace = Namespace()
    text: Annotated[str, StringConstraints(max_length=1_000)] | None = None
    memory_types: Annotated[list[MemoryType], Field(max_length=16)] = Field(default=[])
    subject: Subject | None = None
    tags: Annotated[list[Name], Field(max_length=16)] = Field(default=[])
    scope: Json = Field(
        default={}
    )  # a record's own scope must be met by this and the namespace, where set
    min_confidence: Share | None = None
    fresh_since: Moment | None = None
    of_run: RunId | None = None  # another run's working memory; None: the reader's own
    chain: StepId | None = None  # over the run's, slot by slot
    slots: Annotated[list[Slot], Field(max_length=6)] = Field(default=[])
    hidden: bool = False  # also what a compile is to leave out, and why
    limit: Annotated[int, Field(ge=1, le=MOST_READ), A_NUMBER] = 20
    scorer: Annotated[str, AfterValidator(scorer_name), SCORER_WORDS] = PIECES

    @model_validator(mode="after")
    def _says_whose(self) -> Self:
        if not self.is_working and not any(self.namespace.parts):
            raise ValueError("name whose memory: a namespace, or a run for its working memory")
        return self

    @property
    def is_working(self) -> bool:
        """Whether working memory is read: it is requested, or nothing else is named."""
        working = bool(self.of_run or self.chain or self.slots) or self.memory_types == ["working"]
        is_named = any(self.namespace.parts)
        return (working or not is_named) and bool(self.of_run or self.run)


class EndMemory(MemoryActor):
    """Say that a record does not hold (or, for a purge, that it must go), and why."""

    memory_id: MemoryId
    reason: Reason
    by: Name


class EndApprovedMemory(MemoryActor):
    """Say that a record does not hold, as the person did who approved the action being run."""

    memory_id: MemoryId
    reason: Reason
    approval_id: MemoryId
    claim_id: MemoryId


class AcceptMemory(MemoryActor):
    """Let a record that waits for a review take its place."""

    memory_id: MemoryId
    by: Name
    reason: Annotated[str, StringConstraints(max_length=2_000)] = ""


class UnsupersedeMemory(MemoryActor):
    """Let a record stand again that another one superseded."""

    memory_id: MemoryId
    by: Name
    reason: Annotated[str, StringConstraints(max_length=2_000)] = ""
    superseded_by: MemoryId | None = None  # only while it is superseded by this one


def _countable(at: AwareDatetime) -> AwareDatetime:
    """Refuse what 64 bits of nanoseconds since 1970 cannot hold."""
    if not 1970 <= at.year < 2262:
        raise ValueError("a time between 1970 and 2261 is expected")
    return at


def as_compile_record(record: Mapping[str, Any]) -> Json:
    """Return a memory of a response as a record that a compile takes.

    Its namespace is its scope, and its standing goes with it: what does not stand is left out there
    with a receipt that says so.
    """
    is_working = record["memory_type"] == "working"
    metadata = {
        **record["metadata"],
        "memory_id": record["memory_id"],
        "memory_state": record["state"],
        "memory_version": record["version"],
        "writer": record["writer"],
        "attribute": record["attribute"],
        "approval_id": record["approval_id"],
        "ended_reason": record["ended"]["reason"] if record["ended"] else None,
        "related_item_id": record["superseded_by"] or record["contests"],
    }
    return {
        "id": record["memory_id"],
        "memory_type": record["memory_type"],
        "subject": record["subject"],
        "content": record["content"],
        "source_run_id": record["source_run_id"],
        "source_step_ids": record["source_step_ids"],
        "confidence": record["confidence"],
        "freshness_ts": record["freshness_at"],
        "expires_at": record["expires_at"],
        "tags": [*record["tags"], f"writer:{record['writer']}"],
        "scope": {} if is_working else {**record["scope"], **record["namespace"]},
        "metadata": {key: value for key, value in metadata.items() if value not in (None, "")},
    }
