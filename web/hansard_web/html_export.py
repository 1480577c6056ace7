"""A run or a comparison as one HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import apsw
from markupsafe import Markup

from hansard_collector.derivation.stored_span import StepReading, read_step
from hansard_compiler.calls import Message
from hansard_store.compilations.receipts import StoredReceipt, receipts_of
from hansard_store.errors import StoreCorruptError
from hansard_store.runs.queries import RunItem, get_run
from hansard_store.steps.queries import TreeRow, tree_rows
from hansard_web.api.values import plain
from hansard_web.compile_view.labels import DECISIONS, meaning
from hansard_web.diff.page.routes import diff_view, whole_state
from hansard_web.diff.runs import Trees
from hansard_web.diff.steps import text_with_label
from hansard_web.media.recorded import media_in, media_in_part
from hansard_web.run_page.geometry import Recent
from hansard_web.ui.assets import package_assets
from hansard_web.ui.format import plural
from hansard_web.ui.json_tree import parsed
from hansard_web.ui.messages import WHO
from hansard_web.ui.render import Renderer

# The frame of a saved file: styles inside, and a policy that lets nothing else in.

_STYLES: Final = ("hansard", "app", "run", "context", "diff")
_STYLE: Final = Markup("<style>{}</style>")
MEDIA_TYPE: Final = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class SavedPage:
    """What the frame shows around a view."""

    title: str
    view: Any
    made_ns: int  # when it was saved
    style: Markup
    policy: str


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file to be saved or sent."""

    name: str
    body: bytes


def saved_file(name: str, template: str, title: str, view: Any, *, now_ns: int) -> SavedFile:
    """Render a view into one file that opens offline."""
    css = _css()
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    page = SavedPage(title, view, now_ns, _STYLE.format(Markup(css)), policy)
    text = Renderer().text(template, page=page, now_ns=now_ns)
    return SavedFile(name, text.encode("utf-8", "replace"))


@cache
def _css() -> str:
    """Return all stylesheets; none of them names another file."""
    assets = package_assets()
    found = (assets.find(f"css/{name}.css") for name in _STYLES)
    return "\n".join(one.body.decode() for one in found if one is not None)


# A comparison as one HTML file.


def saved_diff(
    connection: apsw.Connection, left: str, right: str, *, trees: Trees, now_ns: int
) -> SavedFile:
    """Compare two runs or two steps into a file; raises as the comparison does.

    2,000 rows of steps and 200 items at most; what was left out is said in it.
    """
    state = whole_state(connection, left, right, {})
    view = diff_view(
        connection, state, trees=trees, comparisons=Recent(1), now_ns=now_ns, is_saved=True
    )
    names = "-".join(side.short_id for side in view.sides)
    return saved_file(f"diff-{names}.html", "saved/diff.html", view.title, view, now_ns=now_ns)


# A run as one HTML file: its steps, each with its input and output.

MOST_STEPS: Final = 2_000
MOST_CHARS: Final = 6_000_000  # of content, in the whole file
MOST_IMAGE_BYTES: Final = 8_000_000  # of all images in it
_LONGEST: Final = 20_000  # characters of one text
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class _Text:
    """A text of a step, cut where it is long."""

    title: str
    text: str
    left_out: int = 0  # characters


@dataclass(frozen=True, slots=True)
class SavedImage:
    """An image inside of the file."""

    src: str  # a data URL
    label: str


@dataclass(frozen=True, slots=True)
class SavedStep:
    row: TreeRow
    depth: int
    from_pct: float
    width_pct: float
    texts: tuple[_Text, ...]
    notes: tuple[str, ...]
    images: tuple[SavedImage, ...] = ()


@dataclass(frozen=True, slots=True)
class SavedRun:
    run: RunItem
    steps: tuple[SavedStep, ...]
    left_out: tuple[str, ...]  # what is not in this file, and why


def saved_run(connection: apsw.Connection, run_id: str, *, trees: Trees, now_ns: int) -> SavedFile:
    """Put a run into a file; raises NotFoundError or AmbiguousIdError.

    2,000 steps and 6 million characters of content at most; what was left out is said in it.
    """
    run = get_run(connection, run_id, now_ns=now_ns)
    tree = trees(connection, run.run_id)
    saved_rows = range(min(len(tree.tree), MOST_STEPS))
    rows = tree_rows(connection, tree, saved_rows, now_ns=now_ns)
    writer = _Writer(connection, run)
    steps = tuple(writer.step(row) for row in rows)
    view = SavedRun(run, steps, tuple(writer.left_out(len(tree.tree) - len(rows))))
    title = run.agent_name or run.name
    return saved_file(f"run-{run.run_id}.html", "saved/run.html", title, view, now_ns=now_ns)


class _Writer:
    """Reads steps one by one, until the file is full."""

    def __init__(self, connection: apsw.Connection, run: RunItem) -> None:
        self._connection = connection
        self._run = run
        self._room = MOST_CHARS
        self._seen: set[bytes] = set()  # messages that stand above already
        self._image_room = MOST_IMAGE_BYTES
        self._images: list[SavedImage] = []  # of the step that is written
        self._images_out = 0
        self._embedded: set[str] = set()  # their digests: each stands once
        self._empty = 0  # steps whose content found no room

    def step(self, row: TreeRow) -> SavedStep:
        texts: tuple[_Text, ...] = ()
        notes: tuple[str, ...] = ()
        self._images = []
        if self._room > 0:
            texts, notes = self._content(row)
        else:
            self._empty += 1
            notes = ("Content of this step was left out: the file is full.",)
        start = row.step.sort_ns - self._run.started_ns
        whole = max(self._run.duration_ns or 0, 1)
        return SavedStep(
            row,
            min(row.depth, _DEEPEST),
            _share(start, whole),
            max(_share(row.step.duration_ns or 0, whole), 0.3),
            texts,
            notes,
            tuple(self._images),
        )

    def _take_media(self, message: Message) -> None:
        for part in message.parts:
            for one in media_in_part(part)[1]:
                if one.digest in self._embedded:
                    continue
                if one.kind.view != "image" or len(one.data) > self._image_room:
                    self._images_out += 1
                    continue
                self._embedded.add(one.digest)
                self._image_room -= len(one.data)
                src = f"data:{one.kind.media_type};base64,{base64.b64encode(one.data).decode()}"
                self._images.append(SavedImage(src, one.placeholder))

    def left_out(self, steps: int) -> Iterator[str]:
        """Yield what is not in the file."""
        if steps:
            yield f"{plural(steps, 'step')} after the first {MOST_STEPS:,}"
        if self._images_out:
            yield f"{plural(self._images_out, 'image or file')} of messages"
        if self._empty:
            yield f"the content of {plural(self._empty, 'step')}: the file is full"

    def _content(self, row: TreeRow) -> tuple[tuple[_Text, ...], tuple[str, ...]]:
        try:
            reading = read_step(self._connection, row.step.id)
        except StoreCorruptError as error:
            return (), (str(error),)
        sent = reading.normal.call.input if reading.normal.call else ()
        repeated = sum(one.hash in self._seen for one in sent)
        content = self._texts(reading) if row.step.role != "compile" else self._decisions(row)
        texts = tuple(self._cut(title, text) for title, text in content if text)
        note = f"{plural(repeated, 'message')} of the prompt stand above" if repeated else ""
        return texts, (*((note,) if note else ()), *reading.normal.notes)

    def _decisions(self, row: TreeRow) -> Iterator[tuple[str, str]]:
        """Yield what a compile did with each candidate, a line each."""
        for decision, word in DECISIONS.items():
            lines = [
                _receipt_line(one)
                for one in receipts_of(self._connection, row.step.id)
                if one.decision == decision
            ]
            if lines:
                yield f"{plural(len(lines), 'item')} {word}", "\n".join(lines)

    def _texts(self, reading: StepReading) -> Iterator[tuple[str, str]]:
        normal = reading.normal
        if normal.error is not None or reading.view.status_message:
            error = normal.error.message if normal.error else None
            yield "Error", error or reading.view.status_message
        if normal.call is not None:
            for message in (*normal.call.input, *normal.call.output):
                if message.hash not in self._seen:
                    self._seen.add(message.hash)
                    self._take_media(message)
                    yield WHO.get(message.role, message.role), text_with_label(message)
            return
        tool = normal.tool
        for title, value in (
            ("Arguments", tool and tool.arguments),
            ("Result", tool and tool.result),
            ("Query", normal.query),
            ("Input", normal.input),
            ("Output", normal.output),
        ):
            yield title, _as_text(media_in(parsed(value))[0])
        for number, one in enumerate(normal.documents, 1):
            yield f"Document {number}", one.content or ""

    def _cut(self, title: str, text: str) -> _Text:
        length = max(min(len(text), _LONGEST, self._room), 0)
        self._room -= length
        return _Text(title, text[:length], len(text) - length)


def _receipt_line(one: StoredReceipt) -> str:
    tokens = "" if one.tokens_after is None else f", {one.tokens_after:,} tokens"
    if one.tokens_before not in (None, one.tokens_after) and one.decision != "exclude":
        tokens += f" of {one.tokens_before:,}"
    return f"{one.item_id}: {meaning(one.reason)}{tokens if one.decision != 'exclude' else ''}"


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(plain(value), ensure_ascii=False, indent=2)


def _share(part: int, whole: int) -> float:
    return round(min(max(100 * part / whole, 0.0), 100.0), 2)
