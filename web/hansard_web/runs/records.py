"""A run and its steps as the models that `docs/schemas` publishes: RunRecord, StepRecord.

docs/semantic-conventions.md says what each field is in a trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import apsw

from hansard_collector.derivation.stored_span import read_step
from hansard_compiler.calls import Json
from hansard_store.runs.queries import RunItem
from hansard_store.steps.queries import RunTree, TreeRow, tree_rows
from hansard_store.steps.tree import Node
from hansard_store.times import time_text
from hansard_web.api.values import plain

_STATUSES: Final = {
    "ok": "completed", "unset": "completed", "error": "failed", "cancelled": "cancelled",
}  # fmt: skip
_RUNNING: Final = "running"  # without an end, even if nobody is there to give it one
_KINDS: Final = {
    "llm": "model_call", "embedding": "model_call", "tool": "tool_call", "memory": "memory_write",
    "policy": "policy_check", "approval": "human_approval",
}  # fmt: skip
_READS: Final = ("search_memory", "read_memory")  # of memory, and so no writes
_RUN: Final = "hansard.run.metadata."
_STEP: Final = "hansard.step.metadata."


def run_record(connection: apsw.Connection, run: RunItem, tree: RunTree) -> Json:
    """Return a run as a RunRecord; what nothing tells of it is \"\"."""
    roots = (at for at, depth in enumerate(tree.tree.depths) if depth == 0)
    fields: dict[str, Any] = {}
    for at in roots:
        fields = {**_metadata(connection, tree.tree.nodes[at].id, _RUN), **fields}
        if fields:
            break
    return {
        "schema_version": "1",
        "run_id": run.run_id,
        "agent_name": run.agent_name or "",
        "domain": run.domain or "",
        "user_goal": run.user_goal or "",
        "started_at": time_text(run.started_ns),
        "ended_at": time_text(run.ended_ns),
        "status": _STATUSES.get(run.status, _RUNNING),
        "metadata": fields,
    }


def by_start(tree: RunTree) -> list[int]:
    """Return the places of a run's steps in the order they began: that of `step_index`."""
    nodes = tree.tree.nodes
    return sorted(
        range(len(nodes)), key=lambda at: (nodes[at].sort_ns, nodes[at].span_id, nodes[at].side)
    )


def step_records(
    connection: apsw.Connection, tree: RunTree, places: Sequence[int], *, first: int, now_ns: int
) -> list[Json]:
    """Return steps as StepRecords; `places` are some of `by_start`, from index `first` on."""
    # A step that was deleted meanwhile is left out.
    rows = {row.row: row for row in tree_rows(connection, tree, places, now_ns=now_ns)}
    return [
        _step_record(connection, rows[position], tree.tree.nodes[position], index)
        for index, position in enumerate(places, start=first)
        if position in rows
    ]


def _step_record(connection: apsw.Connection, row: TreeRow, node: Node, index: int) -> Json:
    step = row.step
    attributes = read_step(connection, node.id).view.attributes
    kind = _KINDS.get(step.role, "other")
    if step.role == "memory" and attributes.get("gen_ai.operation.name") in _READS:
        kind = "other"
    status = "blocked" if step.status == "blocked" else _STATUSES.get(step.status, _RUNNING)
    return {
        "schema_version": "1",
        "step_id": step.step_id,
        "run_id": step.run_id,
        "step_index": index,
        "step_kind": kind,
        "started_at": time_text(node.sort_ns if step.start_ns is None else step.start_ns),
        "ended_at": time_text(step.end_ns),
        "status": status,
        "metadata": _of_prefix(attributes, _STEP),
    }


def _metadata(connection: apsw.Connection, span: int, prefix: str) -> Json:
    return _of_prefix(read_step(connection, span).view.attributes, prefix)


def _of_prefix(attributes: Mapping[str, Any], prefix: str) -> Json:
    return {
        key.removeprefix(prefix): plain(value)
        for key, value in attributes.items()
        if key.startswith(prefix)
    }
