"""Runs, steps, hits, sums and errors as bodies of the API (DESIGN §14)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import apsw
from typing_extensions import TypedDict

from hansard_collector.derived_context.context import RunBreaks
from hansard_compiler.models.runs import RunRecord, StepRecord
from hansard_store.annotations.queries import AnnotationBody, ScoreSumBody, marks_json
from hansard_store.bodies import Answer, Body, Description, Page, body_of
from hansard_store.runs.queries import RunItem
from hansard_store.runs.status import TokenSums
from hansard_store.runs.usage import UsageRow
from hansard_store.search.full_text import USES_COUNTED, SearchHit
from hansard_store.steps.agent_graph import AgentGraph, GraphPart
from hansard_store.steps.cycles import Cycle
from hansard_store.steps.queries import LinkEnd, RunTree, StepSkeleton, TreeRow, tree_rows
from hansard_store.steps.shared_span_ids import step_id_of
from hansard_store.steps.tree import Node
from hansard_store.steps.usage_sums import SubtreeUsage
from hansard_store.times import time_text

RunStatus = Literal["ok", "error", "open", "no_end", "blocked", "cancelled"]
StepStatus = Literal["ok", "unset", "error", "cancelled", "open", "no_end", "blocked"]


class TokensBody(Body):
    """`input` includes cached tokens, `output` includes reasoning; null = not reported."""

    input: int | None
    output: int | None
    cache_read: int | None
    cache_write: int | None
    reasoning: int | None


class RunBody(Body):
    """A run; `ended_at` and `duration_ms` are null while there is no end."""

    run_id: Annotated[str, Description("trace id, 32 hex digits")]
    name: str
    kind: Annotated[Literal["agent", "other"], Description("other: no step of an agent's work")]
    agent: str | None
    domain: str | None
    user_goal: Annotated[str | None, Description("hansard.run.goal; up to 16,384 characters")]
    status: RunStatus
    started_at: Annotated[str, Description("RFC 3339, nanoseconds, UTC")]
    ended_at: str | None
    started_ns: str
    ended_ns: str | None
    duration_ms: float | None
    span_count: int
    step_count: int
    open_count: int
    model_calls: int
    tool_calls: Annotated[
        int, Description("requested by a model or run, each once; rejected ones are among them")
    ]
    error_count: int
    models: list[str]
    tokens: TokensBody | None
    cost_usd: float | None
    conversation_id: str | None
    group_id: Annotated[
        str | None,
        Description("same for the traces of one prompt; null: of no prompt, or of several"),
    ]
    user_id: str | None
    service_names: list[str]
    first_input: str | None
    last_output: str | None
    has_receipts: bool
    pinned: bool
    synthetic: bool
    tags: Annotated[list[str], Description("that stand on the run and its steps")]
    scores: list[ScoreSumBody]
    pending_approvals: Annotated[int, Description("that wait for a decision or a new draft")]
    rejected_approvals: int
    first_seen_seq: int
    version: int


class RunList(Page):
    items: list[RunBody]


class FacetCount(Body):
    value: str
    runs: int


class Facets(Answer):
    """Counted over the newest runs that meet the filter; `is_complete`: over all of them."""

    runs: int
    is_complete: bool
    facets: dict[str, list[FacetCount]]


class FilterValueBody(Body):
    value: str
    runs: Annotated[
        int | None, Description("1,000 at most; of tags and scores, marks; null: not counted")
    ]


class FilterValueList(Answer):
    """Values of a filter in the whole store; `is_complete`: there are no others."""

    items: list[FilterValueBody]
    is_complete: bool


class StepMention(Body):
    """What every mention of a step says of it."""

    step_id: str
    run_id: str
    span_id: str
    parent_span_id: str | None
    name: str
    role: str
    duplicate: bool
    status: StepStatus
    start_ns: str | None
    end_ns: str | None
    started_at: str | None
    ended_at: str | None
    duration_ms: float | None
    tokens: TokensBody | None
    cost_usd: float | None
    model: str | None
    tool_name: str | None
    agent_name: str | None
    summary: str | None


class UsageSum(Body):
    """What is in the run's totals at a step and below it: each model call once."""

    model_calls: int
    tokens: TokensBody | None
    cost_usd: float | None


class StepItem(StepMention):
    """A step in the tree of its run."""

    sums: Annotated[UsageSum | None, Description("null: nothing at or below it is counted")]
    depth: int
    has_children: bool
    orphan: Annotated[bool, Description("its parent is not stored; it stands at the top")]
    loop: Annotated[bool, Description("it was its own ancestor; the loop was cut here")]


class StepList(Page):
    items: list[StepItem]
    total: Annotated[int, Description("steps of the run, all pages")]


class ModelUse(Body):
    model: str | None
    model_calls: int
    tokens: TokensBody | None
    cost_usd: float | None


class RunTotals(Body):
    steps_by_role: dict[str, int]
    by_model: list[ModelUse]
    calls_without_tokens: Annotated[
        int,
        Description("counted calls that ended well and report no tokens: tokens is a lower bound"),
    ]
    calls_without_cost: Annotated[int, Description("the same for cost_usd")]


class LinkBody(Body):
    run_id: str
    span_id: str
    step: Annotated[StepMention | None, Description("null: not stored here")]


_From = TypedDict("_From", {"from": "list[StepMention]"})


class RunLinks(Body, _From):
    to: list[LinkBody]


class RunNote(Body):
    note: str
    count: int


class LoopBody(Body):
    """Siblings that did the same three times or more in a row, with the same arguments.

    A round is of one to four steps; the prompts of its model calls may differ.
    """

    first_step_id: str
    last_step_id: str
    times: int
    steps: Annotated[list[str], Description("names of the steps of one round")]


class CacheBreakOfCall(Body):
    step_id: str
    lost_tokens: int


class CacheBreaks(Body):
    """Calls whose prompt differs from the one they continue before its end; tokens are estimates.

    What stood behind the difference, unchanged, was paid again.
    """

    model_calls: int
    breaks: int
    lost_tokens: int
    calls: list[CacheBreakOfCall]


class GraphNodeBody(Body):
    """An agent, tool or model; `run` stands for a run without an agent."""

    id: int
    kind: Literal["run", "agent", "tool", "model"]
    name: str
    calls: int
    errors: int
    duration_ms: float
    tokens: Annotated[int, Description("input and output, at and below its steps")]
    cost_usd: float | None
    step_id: Annotated[str | None, Description("the first step that failed, else the first")]


class GraphEdgeBody(Body):
    """Calls of one node by another; `source` and `target` are ids of nodes."""

    source: int
    target: int
    kind: Literal["call", "hand-off"]
    calls: int
    errors: int
    duration_ms: float
    tokens: int
    cost_usd: float | None
    step_id: str | None


class RunGraph(Answer):
    run_id: str
    nodes: list[GraphNodeBody]
    edges: list[GraphEdgeBody]


class Run(RunBody, Answer):
    loops: list[LoopBody]
    cache_breaks: Annotated[
        CacheBreaks | None,
        Description("null: fewer than two model calls, or too many to compare"),
    ]
    annotations: Annotated[list[AnnotationBody], Description("of the run itself that stand")]
    totals: RunTotals
    roots: list[StepItem]
    links: RunLinks
    notes: Annotated[list[RunNote], Description("what was repaired, missing or refused")]


class Hit(Body):
    """A text, in the step that carried it first; highlights are character offsets."""

    run_id: str
    step_id: str
    field: str
    message_role: str | None
    snippet: str
    highlights: list[tuple[int, int]]
    uses: Annotated[int, Description("model calls that sent a message; of other texts, runs")]
    uses_truncated: bool
    step: StepMention


class HitList(Page):
    items: list[Hit]


class UsageBody(Body):
    key: Annotated[str | None, Description("null: what names none")]
    runs: int
    model_calls: int
    tokens: TokensBody | None
    cost_usd: float | None


class UsageList(Page):
    by: str
    items: list[UsageBody]


class SqlRows(Answer):
    """`truncated_cells`: values that were too long; `has_more`: there are further rows."""

    columns: list[str]
    rows: list[list[Any]]
    has_more: bool
    truncated_cells: int


class RunAndSteps(Page):
    """docs/schemas/RunRecord.json, and StepRecord.json for each step in the order they began."""

    run: RunRecord
    steps: Annotated[list[StepRecord], Description("a page of them")]
    total: Annotated[int, Description("steps of the run, all pages")]


def tokens_body(tokens: TokenSums | None) -> TokensBody | None:
    """Return the five figures, None when no call reported any."""
    return None if tokens is None else body_of(TokensBody, tokens)


def run_body(run: RunItem) -> RunBody:
    """Return a run as lists show it."""
    return body_of(
        RunBody,
        run,
        agent=run.agent_name,
        tokens=tokens_body(run.tokens),
        **marks_json(run.marks),
        first_seen_seq=run.id,
    )


def skeleton_body(step: StepSkeleton) -> StepMention:
    """Return what every mention of a step says of it."""
    return body_of(StepMention, step, **mention_of(step))


def mention_of(step: StepSkeleton) -> dict[str, Any]:
    """Return what a mention of a step says in other words than its record."""
    times = {"started_at": time_text(step.start_ns), "ended_at": time_text(step.end_ns)}
    return {**times, "tokens": tokens_body(step.tokens)}


def row_body(row: TreeRow, sums: SubtreeUsage) -> StepItem:
    """Return a step with its place in the tree of its run, and what is counted below it."""
    below = sums.below(row.row)
    place = {name: getattr(row, name) for name in ("depth", "has_children", "orphan", "loop")}
    used = below and body_of(
        UsageSum, below, model_calls=below.calls, tokens=tokens_body(below.tokens)
    )
    return body_of(StepItem, row.step, **mention_of(row.step), **place, sums=used)


def loop_bodies(
    connection: apsw.Connection, tree: RunTree, loops: Mapping[int, Cycle], *, now_ns: int
) -> list[LoopBody]:
    """Return the loops of a run, in the order of the tree."""
    rounds = [row for cycle in loops.values() for row in cycle.members[: cycle.period]]
    ends = [cycle.members[-1] for cycle in loops.values()]
    rows = tree_rows(connection, tree, [*rounds, *ends], now_ns=now_ns)
    steps = {one.row: one.step for one in rows}
    return [
        LoopBody(
            first_step_id=steps[first].step_id,
            last_step_id=steps[cycle.members[-1]].step_id,
            times=cycle.times,
            steps=[steps[row].name for row in cycle.members[: cycle.period] if row in steps],
        )
        for first, cycle in sorted(loops.items())
        if first in steps and cycle.members[-1] in steps
    ]


def cache_breaks_body(breaks: RunBreaks | None, tree: RunTree) -> CacheBreaks | None:
    """Return what breaks of the prompt cache cost, call by call."""
    if breaks is None:
        return None
    nodes = {node.id: node for node in tree.tree.nodes} if breaks.lost_by_span else {}
    calls = [
        CacheBreakOfCall(step_id=node_step_id(tree.run_id, nodes[span]), lost_tokens=lost)
        for span, lost in breaks.lost_by_span.items()
        if span in nodes
    ]
    return body_of(CacheBreaks, breaks, model_calls=breaks.calls, calls=calls)


def graph_body(graph: AgentGraph, tree: RunTree) -> dict[str, Any]:
    """Return a graph with the steps that its nodes and edges lead to."""

    def step(part: GraphPart) -> str | None:
        return None if part.step < 0 else node_step_id(tree.run_id, tree.tree.nodes[part.step])

    return {
        "run_id": tree.run_id,
        "nodes": [
            body_of(
                GraphNodeBody, one.part,
                id=one.number, kind=one.kind, name=one.name, step_id=step(one.part),
            )
            for one in graph.nodes
        ],
        "edges": [
            body_of(
                GraphEdgeBody, one.part,
                source=one.source, target=one.target, kind=one.kind, step_id=step(one.part),
            )
            for one in graph.edges
        ],
    }  # fmt: skip


def node_step_id(run_id: str, node: Node) -> str:
    """Return the id of a step of a tree."""
    return step_id_of(bytes.fromhex(run_id), node.span_id, node.side)


def link_body(end: LinkEnd) -> LinkBody:
    """Return where a link leads, with the step there when it is stored here."""
    return body_of(LinkBody, end, step=end.step and skeleton_body(end.step))


def hit_body(hit: SearchHit) -> Hit:
    """Return a hit with the step it was found in."""
    return body_of(
        Hit,
        hit,
        run_id=hit.step.run_id,
        step_id=hit.step.step_id,
        message_role=hit.role,
        snippet=hit.snippet.text,
        highlights=hit.snippet.highlights,
        uses_truncated=hit.uses >= USES_COUNTED,
        step=skeleton_body(hit.step),
    )


def usage_body(row: UsageRow) -> UsageBody:
    """Return what one day, model, agent or conversation used."""
    return body_of(UsageBody, row, tokens=tokens_body(row.tokens))
