"""What steps are recognised by when two runs are laid side by side."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import apsw
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.derivation.rederivation import StoredSpan, iter_stored
from hansard_collector.derivation.stored_span import StepReading, reading_of
from hansard_compiler.canonical import canonical_bytes
from hansard_compiler.diff import StepMark
from hansard_store.compilations.queries import compile_outcomes
from hansard_store.content.messages import MessageRef, list_calls, read_nodes
from hansard_store.runs.details import CallModels, call_models
from hansard_store.steps.queries import RunTree, StepSkeleton, TreeRow, tree_rows

# The inputs and outputs of steps that are no calls, as digests to compare.


class StepDigests(NamedTuple):
    """Digests across dialects; empty where nothing is reported."""

    input: bytes
    output: bytes


class Understanding:
    """Reads steps of runs that are compared.

    Two runs of one agent mostly do the same things, so what steps of one resource tell in the same
    bytes is understood once: that takes three times as long as reading it.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._known: dict[bytes, StepDigests] = {}

    def of(self, trace_id: bytes, spans: Sequence[int]) -> dict[int, StepDigests]:
        """Return what steps of a run tell, by span.id; without those that cannot be read."""
        found = iter_stored(self._connection, trace_id, spans)
        return {span: self._facts_of(stored) for span, stored in found if stored is not None}

    def _facts_of(self, stored: StoredSpan) -> StepDigests:
        if stored.logs or stored.contents:  # say what the span itself does not
            return digests_of(reading_of(self._connection, stored))
        key = _span_digest(stored)
        facts = self._known.get(key)
        if facts is None:
            facts = self._known[key] = digests_of(reading_of(self._connection, stored))
        return facts


def _span_digest(stored: StoredSpan) -> bytes:
    """Return a digest of all that a span says but for its ids and times."""
    decoded, message = Span(), stored.message
    decoded.CopyFrom(message)
    decoded.trace_id = decoded.span_id = decoded.parent_span_id = b""
    decoded.start_time_unix_nano = decoded.end_time_unix_nano = 0
    stands = (
        stored.resource_id,
        stored.scope_id,
        bool(message.parent_span_id),
        bool(message.end_time_unix_nano),
    )
    return hashlib.sha256(repr(stands).encode() + decoded.SerializeToString()).digest()


def digests_of(reading: StepReading) -> StepDigests:
    """Return what a step that is no call tells."""
    return StepDigests(_input_digest(reading), _output_digest(reading))


def summary_digests(summary: str | None) -> StepDigests:
    """Return what is known of a step that is not read."""
    return StepDigests(_NOTHING, _digest([summary]))


def _input_digest(reading: StepReading) -> bytes:
    normal = reading.normal
    arguments = None if normal.tool is None else normal.tool.arguments
    return _digest([arguments if arguments is not None else normal.input, normal.query])


def _output_digest(reading: StepReading) -> bytes:
    normal = reading.normal
    result = None if normal.tool is None else normal.tool.result
    error = None if normal.error is None else [normal.error.type, normal.error.message]
    documents = [[one.id, one.content] for one in normal.documents]
    return _digest([result if result is not None else normal.output, documents, error])


def _digest(values: Sequence[Any]) -> bytes:
    if all(value in (None, [], ()) for value in values):
        return _NOTHING
    try:
        return hashlib.sha256(canonical_bytes(values)).digest()
    except (TypeError, RecursionError):
        return hashlib.sha256(repr(values).encode("utf-8", "surrogatepass")).digest()


MOST_READ = 10_000  # steps of one run whose content is read; of the rest the summary is compared
_CALL_ROLES = ("llm", "embedding")
_token_figures = attrgetter("input", "output", "cache_read", "cache_write", "reasoning")
# Their name is the library's word; one of them stands for another whatever it is called.
_NAMELESS = frozenset({"llm", "embedding", "compile"})
_BY_ROLE = frozenset({"llm", "embedding", "agent", "compile"})
_NOTHING = b""


class Facts(NamedTuple):
    """What is compared of a step; times and ids are no content."""

    name: str  # as every library calls it: see `known_as`
    role: str
    status: str
    model: tuple[str | None, ...]  # requested, and served
    tokens: tuple[int | None, ...]
    input: bytes  # a digest of its input, across dialects
    output: bytes
    compile: str | None  # a digest of budget and decisions


@dataclass(frozen=True, slots=True)
class StepsOf:
    """The steps of a run, or below a step, as the tree has them."""

    tree: RunTree
    rows: tuple[TreeRow, ...]
    facts: tuple[Facts, ...]
    marks: tuple[StepMark, ...]
    is_cut: bool  # of some steps only the summary was read


def steps_of(
    connection: apsw.Connection,
    tree: RunTree,
    *,
    understanding: Understanding,
    now_ns: int,
) -> StepsOf:
    """Read what the steps of a run are compared by.

    Costs up to a tenth of a millisecond a step.
    """
    rows = tree_rows(connection, tree, range(len(tree.tree)), now_ns=now_ns)
    calls = _calls(connection, tree.run)
    compiles = compile_outcomes(connection, tree.run)
    models = call_models(connection, tree.run)
    others = [row.step.id for row in rows[:MOST_READ] if row.step.id not in calls]
    known = understanding.of(bytes.fromhex(tree.run_id), others) | calls
    facts = []
    for row in rows:
        step_facts = known.get(row.step.id) or summary_digests(row.step.summary)
        facts.append(
            _facts(row.step, step_facts, compiles.get(row.step.id), models.get(row.step.id))
        )
    base = min((row.depth for row in rows), default=0)
    marks = [_mark(row, one, base) for row, one in zip(rows, facts, strict=True)]
    return StepsOf(tree, tuple(rows), tuple(facts), tuple(marks), len(rows) > MOST_READ)


def what_differs(left: Facts, right: Facts) -> tuple[str, ...]:
    """Return in what two steps differ, by the names of the API."""
    return tuple(name for name in Facts._fields if _differs(name, left, right))


def _differs(name: str, left: Facts, right: Facts) -> bool:
    """Compare one fact; a model or number of tokens that one side does not tell is unknown."""
    one, other = getattr(left, name), getattr(right, name)
    if name in ("tokens", "model"):
        pairs = zip(one, other, strict=False)
        return any(a != b for a, b in pairs if a is not None and b is not None)
    return bool(one != other)


def known_as(step: StepSkeleton) -> str:
    """Return the name of a step in any dialect: a tool's or an agent's own name.

    What a library calls its model calls and compiles says nothing: "".
    """
    if step.tool_name:
        return step.tool_name
    if step.role == "agent" and step.agent_name:
        return step.agent_name
    return "" if step.role in _NAMELESS else step.name


def _facts(
    step: StepSkeleton,
    facts: StepDigests,
    compiled: str | None,
    models: CallModels | None,
) -> Facts:
    tokens = step.tokens
    return Facts(
        name=known_as(step),
        role=step.role,
        status="ok" if step.status == "unset" else step.status,
        model=tuple(models) if models is not None else (),
        tokens=() if tokens is None else _token_figures(tokens),
        input=facts.input,
        output=facts.output,
        compile=compiled,
    )


def _mark(row: TreeRow, facts: Facts, base: int) -> StepMark:
    stands_for = row.step.role if row.step.role in _BY_ROLE else ""
    if row.depth == base:
        stands_for = "top"
    content = hashlib.sha256(repr(facts).encode("utf-8", "surrogatepass")).hexdigest()
    return StepMark(row.step.role, facts.name or row.step.name, content, stands_for)


# ---- content


def _calls(connection: apsw.Connection, run: int) -> dict[int, StepDigests]:
    """Return digests of what each call was sent and answered, by span.id.

    Prefixes that calls share are read and digested once, so a run costs its distinct messages.
    """
    rows = [row for row in list_calls(connection, run) if row.role in _CALL_ROLES]
    ends = {node for row in rows for node in (row.input_prefix, row.output_prefix) if node}
    nodes = read_nodes(connection, ends)
    known: dict[int, bytes] = {0: _NOTHING}
    return {
        row.span: StepDigests(
            _chain(row.input_prefix or 0, nodes, known),
            _chain(row.output_prefix or 0, nodes, known),
        )
        for row in rows
        if row.input_prefix is not None or row.output_prefix is not None
    }


def _chain(
    node: int, nodes: Mapping[int, tuple[int, MessageRef]], known: dict[int, bytes]
) -> bytes:
    way = []
    while node not in known:
        way.append(node)
        node = nodes[node][0]
    digest = known[node]
    for one in reversed(way):
        digest = known[one] = hashlib.sha256(digest + nodes[one][1].match_hash).digest()
    return digest
