"""What two steps differ in, as a page shows it: settings, tokens, context, messages, answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hansard_compiler.canonical import canonical_json
from hansard_compiler.diff import JsonDiff, MessagePair, RequestDiff, TextOp
from hansard_web.api.values import plain
from hansard_web.diff.page.context import ComparedSetting, ContextDiffView, context_view
from hansard_web.diff.page.media import MediaDiff, PayloadLookup, media_diff
from hansard_web.diff.page.state import DiffState
from hansard_web.diff.page.words import Piece, shown_pieces
from hansard_web.diff.steps import StepDiff, text_with_label
from hansard_web.steps.names import step_title
from hansard_web.ui.format import count, file_size, shorten
from hansard_web.ui.messages import WHO

_MOST_PATHS: Final = 100
_MOST_MESSAGES: Final = 100
_LONGEST_VALUE: Final = 300


@dataclass(frozen=True, slots=True)
class MessageRow:
    state: str
    who: str
    place: str
    peek: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class PathRow:
    path: str
    state: str
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class ValueView:
    """A value of both sides, by word and by path."""

    title: str
    pieces: tuple[Piece, ...]
    paths: tuple[PathRow, ...]
    paths_title: str
    is_cut: bool


@dataclass(frozen=True, slots=True)
class RequestView:
    say: str
    is_equal: bool
    paths: tuple[PathRow, ...]
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Detail:
    """The comparison of two steps; None for parts that neither has."""

    name: str
    left_href: str
    right_href: str
    is_empty: bool
    context: ContextDiffView | None
    messages: tuple[MessageRow, ...]
    messages_same: int
    messages_retold: int
    settings: tuple[ComparedSetting, ...]  # of the calls, where no compile recorded them
    values: tuple[ValueView, ...]
    paths: tuple[tuple[str, tuple[PathRow, ...]], ...]  # tools and parameters
    request: RequestView | None
    notes: tuple[str, ...]
    media: MediaDiff | None  # None: neither has any


def detail_of(
    diff: StepDiff,
    state: DiffState,
    *,
    payloads: PayloadLookup | None = None,
    is_saved: bool = False,
) -> Detail:
    """Return the comparison of two steps as a page shows it."""
    shown, same, retold = _messages(diff, everything=state.everything)
    return Detail(
        name=step_title(diff.right.step),
        left_href=f"/steps/{diff.left.step.step_id}",
        right_href=f"/steps/{diff.right.step.step_id}",
        is_empty=diff.is_empty,
        context=None if diff.context is None else context_view(diff, diff.context, state),
        messages=shown,
        messages_same=same,
        messages_retold=retold,
        settings=tuple(_call_settings(diff)),
        values=tuple(_values(diff)),
        paths=tuple(
            (label, _paths(one))
            for label, one in (("Tool definitions", diff.tools),
                               ("Request parameters", diff.parameters))
            if one.changes
        ),
        request=None if diff.request is None else _request(diff.request),
        notes=diff.notes,
        media=media_diff(diff, payloads, is_saved=is_saved),
    )  # fmt: skip


# ---- messages, values, request


def _messages(diff: StepDiff, *, everything: bool) -> tuple[tuple[MessageRow, ...], int, int]:
    same = sum(pair.state == "same" for pair in diff.messages)
    retold = sum(pair.state == "retold" for pair in diff.messages)
    listed = [pair for pair in diff.messages if everything or pair.state not in ("same", "retold")]
    return tuple(_message(diff, pair) for pair in listed[:_MOST_MESSAGES]), same, retold


def _message(diff: StepDiff, pair: MessagePair) -> MessageRow:
    if pair.right is not None:
        message = diff.right.messages[pair.right]
    else:
        message = diff.left.messages[pair.left or 0]
    ops = diff.message_text(pair)
    places = [str(position + 1) for position in (pair.left, pair.right) if position is not None]
    return MessageRow(
        state=pair.state,
        who=WHO.get(message.role, message.role),
        place=places[0] if len(set(places)) == 1 else " → ".join(places),
        peek="" if ops else shorten(text_with_label(message), 400),
        pieces=shown_pieces(ops) if ops else (),
    )


def _values(diff: StepDiff) -> Iterator[ValueView]:
    is_call = diff.left.reading.normal.call is not None
    titles = ("Response", "Tool calls") if is_call else ("Output",) * 2
    for title, paths_title, value in (
        ("Input", "Input", diff.input),
        (*titles, diff.output),
    ):
        if not value.is_empty:
            yield ValueView(
                f"{title}, word by word",
                shown_pieces(value.text) if _differs(value.text) else (),
                _paths(value.json),
                f"{paths_title}, by path",
                value.json.is_cut or len(value.json.changes) > _MOST_PATHS,
            )


def _differs(ops: Sequence[TextOp]) -> bool:
    return any(op.kind != "same" for op in ops)


def _paths(diff: JsonDiff) -> tuple[PathRow, ...]:
    return tuple(
        PathRow(
            one.path,
            one.state,
            "absent" if one.state == "only_right" else _json_text(one.left),
            "absent" if one.state == "only_left" else _json_text(one.right),
        )
        for one in diff.changes[:_MOST_PATHS]
    )


def _json_text(value: object) -> str:
    text = value if isinstance(value, str) else canonical_json(plain(value))
    return shorten(text, _LONGEST_VALUE)


def _request(one: RequestDiff) -> RequestView:
    sizes = [
        "not stored" if size is None else file_size(size)
        for size in (one.left_size, one.right_size)
    ]
    if one.is_equal:
        say = f"The request bytes are equal: {sizes[0]}."
    elif one.first_difference is None:
        say = f"A: {sizes[0]}; B: {sizes[1]}."
    else:
        at = count(one.first_difference)
        say = f"A: {sizes[0]}; B: {sizes[1]}. First difference: byte {at}."
    return RequestView(
        say,
        one.is_equal,
        () if one.json is None else _paths(one.json),
        one.json is not None and (one.json.is_cut or len(one.json.changes) > _MOST_PATHS),
    )


def _call_settings(diff: StepDiff) -> Iterator[ComparedSetting]:
    """Yield the settings of a call, where no compile recorded them."""
    calls = [side.reading.normal.call for side in (diff.left, diff.right)]
    for label, name in _OF_CALL:
        left, right = (getattr(call, name, None) for call in calls)
        if left != right:
            yield ComparedSetting(label, left, right)


_OF_CALL: Final = (
    ("provider", "provider"), ("requested model", "request_model"),
    ("response model", "response_model"), ("finish reason", "finish_reason"),
)  # fmt: skip
