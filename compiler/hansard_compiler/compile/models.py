"""The compiler's edge: what comes in and what goes out, as pydantic models.

Names and fields are provider-neutral and domain-neutral. Times are zone-aware and stored in UTC.
Inside the compiler plain records are used (`items.py`, `receipts.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import TzInfo

from hansard_compiler.canonical import canonical_bytes, stable_hash
from hansard_compiler.compile.config import CompileConfig, Sensitivity
from hansard_compiler.compile.errors import CompileProblem, InvalidInput, UnknownSchemaVersion
from hansard_compiler.models.json_schema import A_NUMBER, Whole

SCHEMA_VERSION = "1"
EXTERNAL = "external"  # metadata `origin` of a memory that came from outside, with its `url`
_UTC = TzInfo(0)


def _in_utc(at: AwareDatetime) -> AwareDatetime:
    try:
        return at.astimezone(_UTC)
    except OverflowError:
        raise ValueError("a time between the years 1 and 9999, in UTC, is expected") from None


Utc: TypeAlias = Annotated[AwareDatetime, AfterValidator(_in_utc)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), A_NUMBER]
Id: TypeAlias = Annotated[str, Field(min_length=1, max_length=512)]
Json: TypeAlias = dict[str, Any]

ItemKind = Literal[
    "system", "policy", "user_msg", "assistant_msg", "task", "constraint", "plan", "memory",
    "retrieval_doc", "tool_schema", "tool_result", "artifact", "file", "code_diff", "summary",
    "handoff", "other",
]  # fmt: skip
SourceType = Literal[
    "user", "app_state", "memory", "retrieval", "tool", "file", "mcp_resource", "policy",
    "human_approval", "external_api", "other",
]  # fmt: skip
MemoryType = Literal[
    "working", "durable", "session_summary", "fact", "preference", "constraint", "artifact_index",
    "correction", "interest", "note", "decision",
]  # fmt: skip
Effect = Literal["allow", "deny", "redact", "require_approval", "require_receipt"]
Decision = Literal["include", "exclude", "compress", "redact"]


class Model(BaseModel):
    """Unknown fields are refused; values do not change after they were checked."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")


class TopLevel(Model):
    """An object that is stored or sent by itself, and so states its schema version."""

    schema_version: Literal["1"] = "1"


class SourceRef(Model):
    """Where a piece of context came from."""

    source_type: SourceType
    uri: str | None = None
    title: str | None = None
    version: str | None = None
    checksum: str | None = None
    retrieval_query: str | None = None
    positions: list[str] = []
    author: str | None = None
    metadata: Json = {}


class ContextItem(Model):
    """One candidate piece of context.

    `stable_hash` depends on kind and content only. Left out, it is computed; a value must match.
    """

    id: Id
    kind: ItemKind
    content: Json | str
    source_ref: SourceRef | None = None  # nullable by its schema; a compile refuses null
    created_at: Utc
    freshness_ts: Utc | None = None
    ttl_seconds: Annotated[int, Field(ge=0), A_NUMBER] | None = (
        None  # from freshness_ts, else created_at
    )
    trust_score: Share = 0.5
    importance_score: Share = 0.5
    sensitivity: Sensitivity = "internal"
    scope: Json = {}
    dependencies: list[Id] = []
    token_estimate: Annotated[int, Field(ge=0), A_NUMBER] | None = None
    stable_hash: str = ""
    tags: list[str] = []
    metadata: Json = {}

    @model_validator(mode="after")
    def _hash_fits(self) -> ContextItem:
        try:
            fitting = item_hash(self.kind, self.content)
            if not isinstance(self.content, str):
                json.dumps(self.content, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("content holds half of a surrogate pair") from None
        except TypeError:
            raise ValueError("content holds what JSON cannot say") from None
        except RecursionError:
            raise ValueError("content is nested too deeply") from None
        if self.stable_hash and self.stable_hash != fitting:
            raise ValueError("stable_hash is not the hash of kind and content")
        self.__dict__["stable_hash"] = fitting
        return self


class MemoryRecord(Model):
    """A stored memory."""

    id: Id
    memory_type: MemoryType
    subject: str
    content: Json | str
    source_run_id: str | None = None
    source_step_ids: list[str] = []
    confidence: Share
    freshness_ts: Utc | None = None
    expires_at: Utc | None = None
    tags: list[str] = []
    scope: Json = {}
    metadata: Json = {}


class PolicyRule(Model):
    """One rule: to what it applies, under which conditions, and what follows."""

    id: Id
    name: str
    description: str = ""
    applies_to: Json = {}
    effect: Effect
    conditions: Json = {}
    priority: Whole = 0
    metadata: Json = {}


class CompilationRequest(TopLevel):
    """Everything one compile reads. `now` is an input: the compiler has no clock."""

    request_id: Id
    run_id: Id
    step_id: Id
    provider: str
    model: str
    now: Utc
    task_summary: str = ""
    context_items: list[ContextItem] = []
    tool_specs: list[Json] = []
    memory_records: list[MemoryRecord] = []
    policy_rules: list[PolicyRule] = []
    token_budget: Whole
    response_reserve: Whole = 0
    compile_config: CompileConfig = CompileConfig()
    # Of a replay: candidates that are to be left out. Not said where there are none, so that the
    # same request has the same bytes as before there were replays.
    removed_items: Annotated[list[Id], Field(exclude_if=lambda found: not found)] = []


class CompilationDecision(Model):
    """A receipt as it is stored and sent: the outcome of one item, and why."""

    item_id: str
    decision: Decision
    pass_name: str
    reason_code: str
    score_breakdown: Json
    original_tokens: int | None = None
    final_tokens: int | None = None
    notes: str | None = None
    kind: ItemKind
    section: str | None = None
    source: str  # source type and where, in one line
    missed_by_tokens: int | None = None
    missed_by_score: int | None = None  # in billionths of a point, as all scores
    related_item_id: str | None = None  # the winner, the remaining copy, what is missing
    rule_ids: list[str] = []
    original_ref: str  # payload of the content before compression, secrets removed
    final_ref: str | None = None  # payload of what was sent; None when nothing was
    removed: list[str] = []  # names of redaction rules, with fingerprints


class CompiledContext(TopLevel):
    """The result of one compile."""

    id: Id
    request_id: str
    provider: str
    model: str
    compile_hash: str
    compiler_version: int | None = None  # which passes decided; None: 0.1 did not say
    scorer: str | None = None  # what rated relevance, with its version
    selected_items: list[str]
    excluded_items: list[str]
    decisions: list[CompilationDecision]
    token_allocation: Json
    stable_prefix_hash: str | None = None
    volatile_suffix_hash: str | None = None
    layout: list[Json] = []
    passes: list[Json] = []
    rendered_payload: Json

    def plain(self) -> Json:
        """Return it as JSON types, decision by decision, so that other threads run in between."""
        decisions = [one.model_dump(mode="json") for one in self.decisions]
        return {**self.model_dump(mode="json", exclude={"decisions"}), "decisions": decisions}


def item_hash(kind: str, content: Json | str) -> str:
    """Return `sha256:<hex>` over the kind and the content's canonical form."""
    return "sha256:" + stable_hash([kind, content]).hex()


_M = TypeVar("_M", bound=BaseModel)


def parse(model: type[_M], data: object) -> _M:
    """Check data against a model; raises InvalidInput (or UnknownSchemaVersion) without values."""
    name = model.__name__
    if isinstance(data, Mapping) and issubclass(model, TopLevel):
        found = data.get("schema_version", SCHEMA_VERSION)
        if found != SCHEMA_VERSION:
            raise UnknownSchemaVersion(name, found=str(found)[:40], supported=SCHEMA_VERSION)
    try:
        return model.model_validate(data)
    except ValidationError as wrong:
        found_wrong = wrong.errors(include_url=False, include_input=False, include_context=False)
        problems = [
            CompileProblem(".".join(map(str, one["loc"])) or name, one["msg"])
            for one in found_wrong
        ]
        raise InvalidInput(name, problems) from None


def first_problem(wrong: ValidationError) -> str:
    """Return the place of the first problem and what it is, without the value."""
    first = wrong.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def size_bytes(content: Json | str) -> int:
    """Return how many bytes a content takes as UTF-8, or as canonical JSON."""
    if isinstance(content, str):
        return len(content.encode("utf-8", "surrogatepass"))
    return len(canonical_bytes(content))
