"""What the form of a replay offers to change: settings, items, messages, as they were recorded."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from hansard_collector.dialects.content.chat import request_messages
from hansard_compiler.calls import Json, Message
from hansard_compiler.canonical import canonical_json
from hansard_compiler.compile.items import from_tool
from hansard_compiler.compile.models import CompilationRequest
from hansard_compiler.diff import CompileSide, ItemSide
from hansard_compiler.errors import HansardError
from hansard_compiler.providers.base import Sampling
from hansard_compiler.providers.from_telemetry import mutate_messages, rebuilt_from, sampling_from
from hansard_compiler.providers.transport.exchange import read_json
from hansard_compiler.replay.mutations import parse_mutations
from hansard_compiler.replay.request_edits import edit_request
from hansard_compiler.replay.requests import item_ids
from hansard_web.api.values import plain
from hansard_web.compile_view.labels import DECISIONS, ItemNames, icon_of, kind_words
from hansard_web.diff.labels import tokens_text
from hansard_web.diff.steps import text_with_label
from hansard_web.replay.transport.turn import ReplayTurn
from hansard_web.replay_page.fields import SAMPLING, TERMS, content_mark
from hansard_web.replay_page.state import ReplayState
from hansard_web.ui.format import count, shorten
from hansard_web.ui.messages import WHO

PROVIDERS: Final = ("openai", "anthropic", "openai_compatible", "scripted")
KINDS: Final = ("file", "retrieval_doc", "memory", "constraint", "plan", "task", "summary",
                "user_msg", "assistant_msg", "system", "other")  # fmt: skip
_MOST_ROWS: Final = 500
_LONGEST: Final = 200_000  # characters that a textarea is filled with


@dataclass(frozen=True, slots=True)
class _Setting:
    """A field, with the recorded value beside it."""

    name: str
    label: str
    recorded: str
    value: str  # "" where it is left as it was

    @classmethod
    def of(cls, name: str, label: str, recorded: str, changed: Json, key: str = "") -> _Setting:
        """Return a field whose change stands under its name, or under another key."""
        return cls(name, label, recorded, _shown(changed.get(key or name)))


@dataclass(frozen=True, slots=True)
class _Row:
    """An item of the compile, or a message of the call."""

    key: str
    icon: str
    name: str
    about: str
    decision: str  # "" for messages
    label: str
    tokens: str
    is_out: bool
    may_leave_out: bool
    edit_href: str | None
    is_open: bool


@dataclass(frozen=True, slots=True)
class Editing:
    """Content that is open for editing."""

    field: str  # edit_item or edit_message
    key: str
    name: str
    content: str
    is_json: bool

    @property
    def mark(self) -> str:
        """Return what tells content that was not touched."""
        return content_mark(self.content)


@dataclass(frozen=True, slots=True)
class Form:
    """Everything that can be changed. Of a call without a compile there are only messages."""

    is_compiled: bool
    settings: tuple[_Setting, ...]  # model, budget, sampling
    weights: tuple[_Setting, ...]
    provider: _Setting
    providers: tuple[str, ...]
    rows: tuple[_Row, ...]
    more: int
    sources: tuple[str, ...]
    memories: tuple[str, ...]
    tools: tuple[str, ...]  # of a call without a compile
    rules: int | None
    kinds: tuple[str, ...]
    editing: Editing | None


def form_of(turn: ReplayTurn, state: ReplayState) -> Form:
    """Return what can be changed of a call; `turn` is it without changes."""
    changes = {str(one["op"]): one for one in state.changes}
    call = turn.source.call
    recorded = sampling_from(call) if call is not None else Sampling()
    remade = turn.remade
    before = None if remade is None else remade.before
    request = None if before is None else before.request
    if before is not None and request is not None:
        rows = _item_rows(before, request, state)
        editing = _editing_item(request, state)
    else:
        messages = _messages(turn, state)
        rows = _message_rows(messages, state)
        editing = _editing_message(messages, state)
    changed: Json = {}
    for op in ("set_provider", "set_model", "set_budget", "set_sampling"):
        changed |= changes.get(op, {})
    settings = [_Setting.of("model", "Model", turn.render_input.model, changed)]
    if request is not None:
        budget, reserve = count(request.token_budget), count(request.response_reserve)
        settings += [
            _Setting.of("token_budget", "Budget, tokens", budget, changed),
            _Setting.of("response_reserve", "Kept for the answer", reserve, changed),
        ]
    settings += _sampling(recorded, changed)
    return Form(
        is_compiled=request is not None,
        settings=tuple(settings),
        weights=() if request is None else _weights(request, changes.get("set_weights", {})),
        provider=_Setting.of("provider", "Provider", turn.destination.provider, changed),
        providers=PROVIDERS,
        rows=rows[:_MOST_ROWS],
        more=max(len(rows) - _MOST_ROWS, 0),
        sources=() if request is None else _sources(request),
        memories=() if request is None else _memories(request),
        tools=() if request is not None else _tools(turn),
        rules=None if request is None else len(request.policy_rules),
        kinds=KINDS,
        editing=editing,
    )  # fmt: skip


# ---- settings


def _weights(request: CompilationRequest, change: Json) -> tuple[_Setting, ...]:
    now = request.compile_config.weights.model_dump()
    weights = change.get("weights")
    weights = weights if isinstance(weights, dict) else {}
    return tuple(
        _Setting.of(f"weight.{term}", term.replace("_", " "), f"{now[term]:g}", weights, term)
        for term in TERMS
    )


def _sampling(recorded: Sampling, change: Json) -> list[_Setting]:
    labels = {"max_output_tokens": "Longest answer", "top_p": "Top p"}
    return [
        _Setting.of(
            name,
            labels.get(name, name.capitalize()),
            _shown(getattr(recorded, name)) or "not recorded",
            change,
        )
        for name in SAMPLING
    ]


def _shown(value: Any) -> str:
    return "" if value is None else str(value)


# ---- items


def _item_rows(
    side: CompileSide, request: CompilationRequest, state: ReplayState
) -> tuple[_Row, ...]:
    known = set(item_ids(request))
    out = {one.get("item_id") for one in state.changes if one["op"] == "remove_item"}
    names = ItemNames(request)
    rows = [_item_row(one, names, state, known=known, out=out) for one in side.items]
    # Those that were sent first: leaving out what was out already changes nothing.
    return tuple(sorted(rows, key=lambda row: (not row.is_out, row.decision == "exclude")))


def _item_row(
    item: ItemSide, names: ItemNames, state: ReplayState, *, known: set[str], out: set[Any]
) -> _Row:
    source = "" if item.source in (None, item.item_id) else item.source or ""
    may = item.item_id in known
    tokens = tokens_text(item) if item.is_sent else count(item.tokens_before or 0)
    return _Row(
        key=item.item_id,
        icon=icon_of(item.kind),
        name=names.name(item.item_id, item.kind),
        about=shorten(" · ".join(part for part in (kind_words(item.kind), source) if part), 100),
        decision=item.decision,
        label=DECISIONS.get(item.decision, item.decision),
        tokens=tokens,
        is_out=item.item_id in out,
        may_leave_out=may,
        edit_href=state.href(editing=item.item_id) + "#edit" if may and not state.is_long else None,
        is_open=state.editing == item.item_id,
    )


def _editing_item(request: CompilationRequest, state: ReplayState) -> Editing | None:
    item_id = state.editing
    if not item_id:
        return None
    edits = [one for one in state.changes if one["op"] == "edit_item"]
    edited = {one.get("item_id"): one.get("content") for one in edits}
    contents: dict[str, Any] = {item.id: item.content for item in request.context_items}
    contents |= {record.id: record.content for record in request.memory_records}
    contents |= {from_tool(spec, position=0).id: spec for spec in request.tool_specs}
    if item_id not in contents:
        return None
    content = edited.get(item_id, contents[item_id])
    is_json = not isinstance(contents[item_id], str)
    text = content if isinstance(content, str) else canonical_json(plain(content))
    return Editing("edit_item", item_id, item_id, text[:_LONGEST], is_json)


def _sources(request: CompilationRequest) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for item in request.context_items:
        if item.source_ref is not None:
            found[item.source_ref.source_type] = None
            if item.source_ref.uri:
                found[f"{item.source_ref.source_type} {item.source_ref.uri}"] = None
    return tuple(sorted(found))


def _memories(request: CompilationRequest) -> tuple[str, ...]:
    items = [item.id for item in request.context_items if item.kind == "memory"]
    return tuple(record.id for record in request.memory_records) + tuple(items)


# ---- messages


def _messages(turn: ReplayTurn, state: ReplayState) -> Sequence[Message]:
    """Return the messages as the changes leave them: positions count through those."""
    if turn.source.call is None:
        return ()
    if turn.recorded is not None and turn.destination.family != "scripted":
        return _recorded_messages(turn.recorded, turn.form.path, state)
    rebuilt = rebuilt_from(turn.source.call)
    try:
        return mutate_messages(rebuilt, parse_mutations(state.changes)).messages
    except HansardError:
        return rebuilt.messages


def _recorded_messages(data: bytes, path: str, state: ReplayState) -> Sequence[Message]:
    with suppress(HansardError):  # the preview says why: shown is what was recorded
        data, _ = edit_request(data, path, parse_mutations(state.changes))
    return request_messages(read_json(data))


def _message_rows(messages: Sequence[Message], state: ReplayState) -> tuple[_Row, ...]:
    return tuple(
        _Row(
            key=str(at),
            icon={"system": "system", "user": "user", "tool": "terminal"}.get(one.role, "llm"),
            name=WHO.get(one.role, one.role),
            about=shorten(text_with_label(one), 160),
            decision="",
            label="",
            tokens=str(at),
            is_out=False,
            may_leave_out=True,
            edit_href=state.href(editing=f"message:{at}") + "#edit"
            if one.role != "tool" and not state.is_long
            else None,
            is_open=state.editing == f"message:{at}",
        )
        for at, one in enumerate(messages)
    )


def _editing_message(messages: Sequence[Message], state: ReplayState) -> Editing | None:
    text = state.editing.removeprefix("message:")
    if not text.isascii() or not text.isdigit() or int(text[:9]) >= len(messages):
        return None
    message = messages[int(text)]
    return Editing("edit_message", text, f"message {text}", message.text[:_LONGEST], False)


def _tools(turn: ReplayTurn) -> tuple[str, ...]:
    names = [str(tool.get("name") or "") for tool in turn.render_input.tools]
    return tuple(name for name in names if name)
