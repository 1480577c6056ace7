"""Two steps compared: figures, context, messages, request, what went in and what came out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import apsw

from hansard_collector.derivation.compilations import read_result
from hansard_collector.derivation.stored_span import StepReading, read_step
from hansard_collector.dialects.engine.references import READ_BYTES
from hansard_collector.payloads import PayloadStanding, standing_of
from hansard_compiler.calls import Message, TextPart, ToolCallPart, part_json
from hansard_compiler.canonical import canonical_json
from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.models import CompilationRequest
from hansard_compiler.compile.ports import Ports
from hansard_compiler.compile.record import recorded_request
from hansard_compiler.diff import (
    CompileDiff,
    CompileSide,
    Delta,
    ItemSide,
    JsonDiff,
    MessageMark,
    MessagePair,
    RequestDiff,
    TextOp,
    align_messages,
    compile_diff,
    explain,
    headline,
    json_diff,
    request_diff,
    side_of_context,
    text_diff,
)
from hansard_compiler.diff.explanations import Figure, cache_share
from hansard_compiler.errors import HansardError, NotFoundError
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.tokens.estimators import estimator_for
from hansard_store.bodies import milliseconds, usd
from hansard_store.compilations.queries import Compilation
from hansard_store.compilations.receipts import StoredReceipt, receipts_of
from hansard_store.content.payloads import Payload, folder_of, read_payload
from hansard_store.errors import StoreCorruptError
from hansard_store.runs.queries import RunItem, get_run
from hansard_store.runs.status import TokenSums
from hansard_store.steps.queries import StepSkeleton, get_step
from hansard_web.api.values import plain
from hansard_web.compile_view.labels import ItemNames
from hansard_web.context.bodies import native_compilation
from hansard_web.diff.neighbours import neighbours_of
from hansard_web.diff.step_facts import known_as
from hansard_web.media.recorded import media_in
from hansard_web.run_page.geometry import Recent

# Compiles of the store as sides of a comparison, and compiling their requests again.

# Trying goes on for some three seconds: a compile takes a quarter of a millisecond an item.
_ITEMS_TRIED: Final = 12_000
_FEWEST_COMPILES: Final = 8
_MOST_COMPILES: Final = 64
_RECENT: Final[Recent[CompileDiff]] = Recent(8)


@dataclass(frozen=True, slots=True)
class StoredCompile:
    """A compile of the store, with what is missing of it."""

    compilation: Compilation
    side: CompileSide
    notes: tuple[str, ...]


def read_compile(connection: apsw.Connection, compilation: Compilation) -> StoredCompile:
    """Read a compile for a comparison: its result, else its receipts; its request if it is here."""
    notes = []
    request, trouble = _compiles_request(connection, compilation)
    if trouble:
        notes.append(trouble)
    result, trouble = _result(connection, compilation.row.result_ref)
    if trouble:
        notes.append(trouble)
    if result is not None:
        side = side_of_context(result, request=request)
    else:
        side = _from_receipts(connection, compilation, request)
    return StoredCompile(compilation, side, tuple(notes))


def compare_compiles(
    connection: apsw.Connection, left: StoredCompile, right: StoredCompile
) -> CompileDiff:
    """Compare two compiles with the cause of every flip; takes some seconds at most, once."""
    key = folder_of(connection).key()
    make = partial(
        explained, left.side, right.side, Redactor(key),
        items_tried=_ITEMS_TRIED, compiles=(_FEWEST_COMPILES, _MOST_COMPILES),
    )  # fmt: skip
    if left.notes or right.notes:
        return make()
    # Both are whole, and nothing changes under one digest.
    rows = (left.compilation.row, right.compilation.row)
    return _RECENT.get((key, *((row.request_ref, row.result_ref) for row in rows)), make)


def explained(
    left: CompileSide,
    right: CompileSide,
    redactor: Redactor,
    *,
    items_tried: int,
    compiles: tuple[int, int],
) -> CompileDiff:
    """Compare two compiles with the cause of every flip, found by compiling again.

    So many items are compiled in all, in at least and at most so many compiles.
    """
    diff = compile_diff(left, right)
    fewest, most = compiles
    return explain(
        diff,
        left,
        right,
        compile_again=partial(_compiled, redactor=redactor),
        most_compiles=min(max(items_tried // max(len(diff.items), 1), fewest), most),
    )


def _compiled(request: CompilationRequest, *, redactor: Redactor) -> CompileResult:
    counter = estimator_for(request.provider, request.model)
    return compile_context(request, Ports(counter=counter, redactor=redactor))


def _compiles_request(
    connection: apsw.Connection, compilation: Compilation
) -> tuple[CompilationRequest | None, str]:
    """Return the request of a compile, or why it is not here.

    One without its secrets serves as well: a cause counts as verified only where compiling it
    again comes to what was recorded.
    """
    ref = compilation.row.request_ref
    if ref is None:
        return None, "no request of this compile was recorded"
    _, payload, trouble = _small_payload(
        connection, ref, "the request of this compile", "compiled again"
    )
    if payload is None:
        return None, trouble
    try:
        data = read_payload(folder_of(connection), payload)
        return recorded_request(data), ""
    except (HansardError, ValueError) as error:
        return None, f"the request of this compile cannot be read: {error}"


def _result(connection: apsw.Connection, ref: str | None) -> tuple[Mapping[str, Any] | None, str]:
    try:
        found = read_result(connection, ref) if ref else None
    except StoreCorruptError as error:
        return None, str(error)
    return found, "" if found else "the result is not here: compared by receipts, without terms"


def _from_receipts(
    connection: apsw.Connection, compilation: Compilation, request: CompilationRequest | None
) -> CompileSide:
    row = compilation.row
    items = tuple(map(_item, receipts_of(connection, compilation.span)))
    tokens, used = row.budget_tokens, row.budget_used
    available = None if tokens is None else tokens - (row.budget_reserve or 0)
    sections: dict[str, int] = {}
    for item in items:
        if item.section is not None:
            sections[item.section] = sections.get(item.section, 0) + (item.tokens_after or 0)
    return CompileSide(
        hash=row.hash,
        provider=row.provider,
        model=row.model,
        items=items,
        budget={
            "budget": tokens,
            "reserve": row.budget_reserve,
            "available": available,
            "used": used,
            "free": None if available is None or used is None else available - used,
        },
        by_section=sections,
        request=request,
    )


def _item(one: StoredReceipt) -> ItemSide:
    where = " ".join(part for part in (one.source_type, one.source) if part)
    return ItemSide(
        item_id=one.item_id,
        kind=one.kind,
        decision=one.decision,
        reason=one.reason,
        pass_name=one.pass_name,
        tokens_before=one.tokens_before,
        tokens_after=one.tokens_after,
        score=one.score_nano,
        section=one.section,
        source=where or None,
        rule_ids=one.rules,
        related=one.related,
        missed_tokens=one.missed_tokens,
        missed_score=one.missed_score_nano,
        original_ref=_ref(one.original),
        final_ref=_ref(one.final),
    )


def _ref(digest: bytes | None) -> str | None:
    return None if digest is None else f"sha256:{digest.hex()}"


_REQUEST_KEY: Final = "hansard.request.ref"
_SAME_TEXT: Final = frozenset({"same", "retold"})
_NO_DIFF: Final = JsonDiff(())
_CALLS: Final = frozenset({"llm", "embedding"})


@dataclass(frozen=True, slots=True)
class StepSide:
    """One step with everything that is compared of it."""

    run: RunItem
    step: StepSkeleton
    parent: str  # its name; "" at the top of the run, or where it is not here
    reading: StepReading
    compiled: StoredCompile | None
    request: bytes | None  # as it went over the wire
    notes: tuple[str, ...]
    place: int | None = None  # among the calls of its run, from 1; None: no call, or not requested

    @property
    def messages(self) -> tuple[Message, ...]:
        call = self.reading.normal.call
        return () if call is None else call.input

    @property
    def answers(self) -> tuple[Message, ...]:
        call = self.reading.normal.call
        return () if call is None else call.output


@dataclass(frozen=True, slots=True)
class ValueDiff:
    """A value of both sides: as text by word, and by path where it is no text."""

    text: tuple[TextOp, ...]
    json: JsonDiff

    @property
    def is_empty(self) -> bool:
        return not self.json.changes and all(op.kind == "same" for op in self.text)


@dataclass(frozen=True, slots=True)
class StepDiff:
    """Two steps side by side. `what` names the parts in which they differ; times are none."""

    left: StepSide
    right: StepSide
    figures: tuple[Delta, ...]
    context: CompileDiff | None  # None: neither, or only one of them, compiled its context
    messages: tuple[MessagePair, ...]
    tools: JsonDiff  # definitions that were offered
    parameters: JsonDiff
    request: RequestDiff | None  # None: neither side has one
    input: ValueDiff
    output: ValueDiff
    what: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return not self.what

    @property
    def item_names(self) -> ItemNames:
        """What to call the items of both compiles."""
        compiled = (self.left.compiled, self.right.compiled)
        return ItemNames(*(None if one is None else one.side.request for one in compiled))

    def message_text(self, pair: MessagePair) -> tuple[TextOp, ...] | None:
        """Return what changed in a message, word by word; None for one that did not change."""
        if pair.state != "changed" or pair.left is None or pair.right is None:
            return None
        left, right = self.left.messages[pair.left], self.right.messages[pair.right]
        return text_diff(text_with_label(left), text_with_label(right))


def text_with_label(message: Message) -> str:
    """Return what a message says as one text: its texts, then calls and results as JSON."""
    others = [part for part in message.parts if not isinstance(part, TextPart)]
    texts = [media_in(message.text)[0]] if message.text else []
    values = (media_in(plain(part_json(part)))[0] for part in others)
    return "\n".join(texts + [canonical_json(value) for value in values])


def compare_steps(
    connection: apsw.Connection, left_id: str, right_id: str, *, now_ns: int
) -> StepDiff:
    """Compare two steps by id or unique prefix; raises NotFoundError or AmbiguousIdError."""
    left, right = (
        _placed(connection, read_side(connection, one, now_ns=now_ns))
        for one in (left_id, right_id)
    )
    return compare_sides(connection, left, right)


def read_side(connection: apsw.Connection, step_id: str, *, now_ns: int) -> StepSide:
    """Read a step for a comparison."""
    step = get_step(connection, step_id, now_ns=now_ns)
    run = get_run(connection, step.run_id, now_ns=now_ns)
    reading = read_step(connection, step.id)
    native = native_compilation(connection, step, reading, run=run.id)
    request, trouble = _request(connection, reading)
    return StepSide(
        run=run,
        step=step,
        parent=_parent_name(connection, step, now_ns=now_ns),
        reading=reading,
        compiled=None if native is None else read_compile(connection, native),
        request=request,
        notes=(trouble,) if trouble else (),
    )


def _placed(connection: apsw.Connection, side: StepSide) -> StepSide:
    """Return a side with its place among the calls of its run, where it is one."""
    if side.step.role not in _CALLS:
        return side
    position = neighbours_of(connection, side.step, run=side.run.id).place
    return side if position is None else replace(side, place=position + 1)


def _parent_name(connection: apsw.Connection, step: StepSkeleton, *, now_ns: int) -> str:
    if step.parent_span_id is None:
        return ""
    try:
        parent = get_step(connection, f"{step.run_id}-{step.parent_span_id}", now_ns=now_ns)
    except NotFoundError:
        return ""
    return parent.name


def compare_sides(connection: apsw.Connection, left: StepSide, right: StepSide) -> StepDiff:
    """Compare two steps that were read."""
    context = None
    if left.compiled is not None and right.compiled is not None:
        context = compare_compiles(connection, left.compiled, right.compiled)
    models = _models(left, right)
    figures = headline(
        step_figures(left.step, model=models[0]), step_figures(right.step, model=models[1])
    )
    messages = align_messages(_marks(left.messages), _marks(right.messages))
    has_request = left.request is not None or right.request is not None
    request = request_diff(left.request, right.request) if has_request else None
    tools = _recorded_diff(_tools(left), _tools(right))
    parameters = _recorded_diff(_parameters(left), _parameters(right))
    put_in = _value_diff(_put_in(left), _put_in(right))
    came_out = _value_diff(_came_out(left), _came_out(right))
    what = [one.name for one in figures if one.is_difference]
    if known_as(left.step) != known_as(right.step):
        what.append("name")
    if left.step.role != right.step.role:
        what.append("role")
    parts = {
        "context": context is not None and not context.is_empty,
        "messages": any(pair.state not in _SAME_TEXT for pair in messages),
        "tools": bool(tools.changes),
        "parameters": bool(parameters.changes),
        "request": request is not None and not request.is_equal,
        "input": not put_in.is_empty,
        "output": not came_out.is_empty,
    }
    what += [name for name, differs in parts.items() if differs]
    return StepDiff(
        left, right, figures, context, messages, tools, parameters, request, put_in, came_out,
        tuple(what), _notes(left, right),
    )  # fmt: skip


def _models(left: StepSide, right: StepSide) -> tuple[str | None, str | None]:
    """Return the two models that can be compared: those that served, else those requested."""
    one, other = left.reading.normal.call, right.reading.normal.call
    if one is None or other is None:
        return left.step.model, right.step.model
    if one.response_model and other.response_model:
        return one.response_model, other.response_model
    if one.request_model and other.request_model:
        return one.request_model, other.request_model
    return left.step.model, right.step.model


def _marks(messages: Sequence[Message]) -> list[MessageMark]:
    return [MessageMark(one.hash, one.match_hash, one.role) for one in messages]


def _recorded_diff(left: Any, right: Any) -> JsonDiff:
    """Compare what both sides tell; what one of them tells nothing of is unknown, not different."""
    return json_diff(left, right) if left and right else _NO_DIFF


def _tools(side: StepSide) -> Any:
    """Return tool definitions by name, so that their order says nothing."""
    call = side.reading.normal.call
    tools = call.tools if call is not None else ()
    return {str(one.get("name", at)): plain(one) for at, one in enumerate(tools)}


def _parameters(side: StepSide) -> Any:
    call = side.reading.normal.call
    return plain(call.parameters) if call is not None else {}


def _notes(left: StepSide, right: StepSide) -> tuple[str, ...]:
    notes = []
    for letter, side in (("A", left), ("B", right)):
        compiled = side.compiled.notes if side.compiled is not None else ()
        notes += [f"{letter}: {note}" for note in (*side.notes, *compiled)]
    for word, read in (("tools", _tools), ("settings", _parameters)):
        if bool(read(left)) != bool(read(right)):
            letter = "A" if not read(left) else "B"
            notes.append(f"{letter} does not tell the {word} of its call: they are not compared")
    if (left.compiled is None) != (right.compiled is None):
        letter = "A" if left.compiled is None else "B"
        notes.append(f"{letter} has no receipts: contexts are compared by messages alone")
    return tuple(notes)


# ---- values


def _put_in(side: StepSide) -> Any:
    """Return the input of a step that is no call; a call's messages are compared apart."""
    normal = side.reading.normal
    if normal.call is not None:
        return None
    if normal.tool is not None and normal.tool.arguments is not None:
        return plain(normal.tool.arguments)
    return plain(normal.query if normal.query is not None else normal.input)


def _came_out(side: StepSide) -> Any:
    """Return the output of a step: of a call its text and the tool calls it requested."""
    normal = side.reading.normal
    if normal.call is not None:
        calls = [
            {"name": part.name, "arguments": plain(part.arguments)}
            for message in side.answers
            for part in message.parts
            if isinstance(part, ToolCallPart)
        ]
        text = "\n".join(message.text for message in side.answers if message.text)
        return _Answer(text, calls)
    if normal.tool is not None and normal.tool.result is not None:
        return plain(normal.tool.result)
    if normal.documents:
        return [{"id": one.id, "content": one.content} for one in normal.documents]
    return plain(normal.output)


@dataclass(frozen=True, slots=True)
class _Answer:
    text: str
    calls: list[Any]


def _value_diff(left: Any, right: Any) -> ValueDiff:
    if isinstance(left, _Answer) or isinstance(right, _Answer):
        one = left if isinstance(left, _Answer) else _Answer(_as_text(left), [])
        other = right if isinstance(right, _Answer) else _Answer(_as_text(right), [])
        return ValueDiff(text_diff(one.text, other.text), json_diff(one.calls, other.calls))
    left, right = _parsed(left), _parsed(right)
    if isinstance(left, str | None) and isinstance(right, str | None):
        return ValueDiff(text_diff(left or "", right or ""), _NO_DIFF)
    return ValueDiff((), json_diff(left, right))


def _parsed(value: Any) -> Any:
    """Return an object or array that was sent as JSON text."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


# ---- the request as it was sent


def _small_payload(
    connection: apsw.Connection, ref: str, name: str, purpose: str
) -> tuple[PayloadStanding, Payload | None, str]:
    """Return a payload that may be read here, or why it is not."""
    standing, payload = standing_of(connection, ref)
    if payload is None:
        return standing, None, f"{name} is {standing.value}"
    if payload.size > READ_BYTES:
        return standing, None, f"{name} is too large to be {purpose} here"
    return standing, payload, ""


def _request(connection: apsw.Connection, reading: StepReading) -> tuple[bytes | None, str]:
    attributes = reading.view.attributes
    ref = attributes.get(_REQUEST_KEY)
    if not isinstance(ref, str):
        return None, ""
    standing, payload, trouble = _small_payload(connection, ref, "its request", "compared")
    if payload is None:
        return None, trouble
    try:
        data = read_payload(folder_of(connection), payload)
    except StoreCorruptError as error:
        return None, str(error)
    is_whole = standing is PayloadStanding.STORED
    return data, "" if is_whole else f"its request was redacted: {payload.redacted}"


# ---- headline figures, by the names that `diff.headline` knows


def run_figures(run: RunItem) -> dict[str, Figure]:
    """Return the figures of a run; None is unknown."""
    return {
        "status": run.status,
        "cost_usd": run.cost_usd,
        "duration_ms": milliseconds(run.duration_ns),
        **_tokens(run.tokens),
        "steps": run.step_count,
        "model_calls": run.model_calls,
        "tool_calls": run.tool_calls,
        "errors": run.error_count,
    }


def step_figures(step: StepSkeleton, *, model: str | None) -> dict[str, Figure]:
    """Return the figures of a step; None is unknown."""
    return {
        "status": "ok" if step.status == "unset" else step.status,
        "model": model,
        "cost_usd": usd(step.cost_usd_nano),
        "duration_ms": milliseconds(step.duration_ns),
        **_tokens(step.tokens),
    }


def _tokens(tokens: TokenSums | None) -> dict[str, Figure]:
    sums = tokens or TokenSums()
    return {
        "tokens.input": sums.input,
        "tokens.output": sums.output,
        "tokens.reasoning": sums.reasoning,
        "cache_share": cache_share(sums.cache_read, sums.input),
    }
