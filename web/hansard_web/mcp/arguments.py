"""The arguments of the tools; a client reads these models as JSON schemas."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from hansard_compiler.calls import Json
from hansard_compiler.compile.models import MemoryType
from hansard_compiler.models.json_schema import A_NUMBER
from hansard_compiler.replay.live import TURNS, USD
from hansard_web.replay.request import MOST_LIVE, LiveTurns, LiveUsd

MOST_ITEMS = 50

Text: TypeAlias = Annotated[str, Field(max_length=1_000)]
# Ids stand in paths: nothing that could lead to another one.
Id: TypeAlias = Annotated[str, Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z_.:-]{0,199}$")]
Limit: TypeAlias = Annotated[int, Field(ge=1, le=MOST_ITEMS), A_NUMBER]
Cursor: TypeAlias = Annotated[
    str | None, Field(max_length=2_000, description="next_cursor of the page before")
]
RunKind: TypeAlias = Literal["agent", "other", "any"]
Confirmation: TypeAlias = Annotated[
    str | None,
    Field(max_length=80, description="what the first call answered, once a person has approved"),
]


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Namespace(Arguments):
    """Whose memory."""

    project: Text | None = None
    user: Text | None = None
    agent: Text | None = None


class SearchMemory(Arguments):
    text: Text | None = Field(default=None, description="words it should say")
    namespace: _Namespace = Field(default=_Namespace(), description="whose; or name a run")
    run_id: Id | None = Field(default=None, description="for the working memory of a run")
    memory_types: list[MemoryType] = Field(default=[], max_length=16)
    tags: list[Text] = Field(default=[], max_length=16)
    subject: Text | None = None
    limit: Limit = 20


class FindReceipts(Arguments):
    item: Text | None = Field(default=None, description="id of an item")
    source: Text | None = Field(default=None, description="where it came from: docs/a.md")
    reason: Text | None = Field(default=None, description="reason code: over_budget, …")
    decision: Literal["include", "exclude", "compress", "redact"] | None = None
    rule: Text | None = Field(default=None, description="id of a policy rule")
    kind: Text | None = None
    run: Id | None = None
    since: Text | None = Field(default=None, description="RFC 3339")
    until: Text | None = Field(default=None, description="RFC 3339")
    limit: Limit = 20
    cursor: Cursor = None


class ExplainItem(Arguments):
    step_id: Id
    item: Text | None = Field(default=None, description="id or source of one item; else all")


class SearchText(Arguments):
    q: Text = Field(description='words that must all be there, "a phrase", prefix*, -word')
    kind: RunKind | None = Field(default=None, description="said in runs of this kind")
    limit: Limit = 20
    cursor: Cursor = None


class ListRuns(Arguments):
    q: Text | None = Field(default=None, description="words said in it")
    kind: RunKind | None = Field(
        default=None, description="agent; other: without an agent, model, tool or gate step"
    )
    status: list[Literal["ok", "error", "open", "no_end", "blocked", "cancelled"]] = []
    agent: Text | None = None
    model: Text | None = None
    tool: Text | None = None
    conversation: Text | None = None
    group: Text | None = Field(default=None, description="group_id: traces of one prompt")
    attribute: Text | None = Field(default=None, description="key:value on some span")
    since: Text | None = Field(default=None, description="started at or after: RFC 3339")
    until: Text | None = Field(default=None, description="started before: RFC 3339")
    sort: Text | None = Field(default=None, description="first_seen, started_at, cost_usd; - falls")
    limit: Limit = 20
    cursor: Cursor = None


class OfRun(Arguments):
    run_id: Id = Field(description="32 hex digits, or a unique beginning of 8 or more")


class ListSteps(OfRun):
    after: Cursor = None
    limit: Limit = 50


class OfStep(Arguments):
    step_id: Id = Field(description="<run id>-<span id>")


class Diff(Arguments):
    of: Literal["steps", "runs"] = Field(description="what the two ids name")
    left: Id
    right: Id


class CheckPolicy(Arguments):
    tool: Json | None = Field(
        default=None, description="a call: name, class, effect, arguments, sensitivity, scope"
    )
    item: Json | None = Field(
        default=None, description="or an item: id, kind, tags, source_uri, sensitivity"
    )
    context: Json = Field(
        default={}, description="agent, task_type, provider, model, environment, user, project"
    )


class Replay(Arguments):
    step_id: Id
    mode: Literal["exact", "mutated", "forward"] | None = None
    mutations: list[Any] = Field(default=[], max_length=100, description="in order; docs/replay.md")
    recorded: bool = Field(default=False, description="answer from the recording, send nothing")
    preview: bool = Field(default=False, description="show what would be sent, send nothing")
    allow_provider_side_effects: bool = Field(
        default=False,
        description="let the provider run its own tools and keep state, after a second approval",
    )
    live: bool = Field(
        default=False, description="a fork that goes on past the recording; results may be needed"
    )
    max_turns: LiveTurns = Field(default=TURNS, description="live turns at most")
    max_usd: LiveUsd = Field(default=USD, description="what live turns may cost at most")
    n: Annotated[int, Field(ge=1, le=50), A_NUMBER] = 1
    notes: Text | None = Field(default=None, description="why; kept with it")
    wait_s: Annotated[float, Field(ge=0, le=60), A_NUMBER] = 20
    confirmation: Confirmation = None


class _Result(Arguments):
    call_id: Text
    result: Any = Field(description="as the model receives it: text or JSON")
    is_error: bool = False


class ContinueReplay(Arguments):
    replay_id: Id
    results: list[_Result] = Field(
        default=[], max_length=MOST_LIVE, description="of calls in its `continuation` that need one"
    )
    max_turns: LiveTurns = Field(default=TURNS, description="further live turns at most")
    max_usd: LiveUsd = Field(default=USD, description="what they may cost at most")
    wait_s: Annotated[float, Field(ge=0, le=60), A_NUMBER] = 20
    confirmation: Confirmation = None


class GetReplay(Arguments):
    replay_id: Id
    wait_s: Annotated[float, Field(ge=0, le=60), A_NUMBER] = 0


class GetPayload(Arguments):
    ref: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    characters: Annotated[int, Field(ge=0, le=20_000), A_NUMBER] = Field(
        default=2_000, description="of its beginning, where it is text"
    )


class ListTranscripts(Arguments):
    conversation: Text | None = None
    limit: Limit = 20
    cursor: Cursor = None


class GetTranscript(Arguments):
    transcript_id: Id
    view: Literal["all", "active"] = "active"
    limit: Limit = 50
    cursor: Cursor = None


class ListApprovals(Arguments):
    status: list[Literal["awaiting", "revised", "approved", "rejected", "expired"]] = []
    tool: Text | None = None
    agent: Text | None = None
    run: Id | None = None
    limit: Limit = 20
    cursor: Cursor = None


class GetApproval(Arguments):
    approval_id: Id
    wait_s: Annotated[float, Field(ge=0, le=60), A_NUMBER] = Field(
        default=0, description="until it is decided or redrafted"
    )


class QuerySql(Arguments):
    sql: Annotated[str, Field(max_length=10_000)] = Field(
        description="one SELECT over the views runs, steps, context_items, compilation_requests, "
        "compilation_results, memory_records, tool_events, policy_events, replay_runs, "
        "pending_actions"
    )
    limit: Annotated[int, Field(ge=1, le=200), A_NUMBER] = 50


class RememberFact(Arguments):
    memory_type: Literal["fact", "preference", "constraint", "correction", "note", "decision"]
    subject: Annotated[str, Field(min_length=1, max_length=512)]
    attribute: Annotated[str, Field(max_length=256)] = Field(
        default="", description="which fact about the subject; a newer one supersedes it"
    )
    content: Annotated[str, Field(min_length=1, max_length=20_000)]
    namespace: _Namespace = Field(description="whose: project, user or agent")
    tags: list[Annotated[str, Field(min_length=1, max_length=256)]] = Field(
        default=[], max_length=32
    )
    ttl_s: Annotated[int, Field(gt=0, le=5 * 10**9), A_NUMBER] | None = None
    confirmation: Confirmation = None


class InvalidateMemory(Arguments):
    memory_id: Annotated[str, Field(pattern=r"^[0-9a-f]{8,32}$")]
    reason: Annotated[str, Field(min_length=1, max_length=2_000)]
    confirmation: Confirmation = None
