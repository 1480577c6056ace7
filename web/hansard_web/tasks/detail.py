"""One task as the page shows it: what repeats, how often, since when, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import apsw

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.detection.rules import rule_text, span_of_time
from hansard_store.memory.maintenance.supersessions import Supersession, of_task
from hansard_store.memory.rows import get_memory
from hansard_store.principals.model import CLAIMED, person_text
from hansard_store.steps.queries import get_step
from hansard_store.tasks.json import sample_of
from hansard_store.tasks.rows import Evidence, Task, get_task
from hansard_web.memory.labels import text_of, title_of
from hansard_web.tasks import labels as words
from hansard_web.ui.format import agent_words, plural

_HEIGHT: Final = 24  # of the picture, in its own units
_WORDS_CHARS: Final = 600


@dataclass(frozen=True, slots=True)
class Bar:
    """How often in a part of the window; places are percents and units of the picture."""

    x: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Place:
    """One time that it happened."""

    kind: str
    href: str  # of what may be gone with its run
    short_id: str
    name: str  # of a step or a memory that is here; else its short id
    at_ns: int
    is_first: bool
    says: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """A supersession that approving the task applies."""

    older_href: str
    older_text: str
    newer_href: str
    newer_text: str
    why: str
    judge: str  # with its score
    state: str


@dataclass(frozen=True, slots=True)
class Detail:
    """Everything to the right of the list."""

    task: Task
    mark: str
    word: str
    rule: str  # what was looked for, and the numbers in force
    says: str
    says_title: str
    places: tuple[Place, ...]
    more: str  # what the places leave out
    bars: tuple[Bar, ...]
    bars_say: str
    window: str
    decided_by: str
    done_by: str
    proposals: tuple[Proposal, ...]  # none: approving it changes nothing by itself


def read_detail(connection: apsw.Connection, task_id: str) -> Detail:
    """Read a task with the words of its evidence, as far as they are kept.

    Raises NotFoundError or AmbiguousIdError.
    """
    task = get_task(connection, task_id)
    mark, word = words.STATES[task.state]
    window = span_of_time(task.window_ns)
    places = _places(connection, task.evidence)
    left_out = task.count - len(places)
    return Detail(
        task=task,
        mark=mark,
        word=word,
        rule=rule_text(task.rule, threshold=task.threshold, window_ns=task.window_ns),
        says=places[0].says,
        says_title=words.SAYS[places[0].kind],
        places=tuple(places),
        more=f"{plural(left_out, 'other')} between the first one and these" if left_out else "",
        bars=tuple(_bars(task.activity)),
        bars_say=f"how often in each part of the {window} before the last look: "
        + ", ".join(map(str, task.activity)),
        window=window,
        decided_by=person_text(task.decided_by, task.decided_method or CLAIMED.method),
        done_by=person_text(task.done_by, task.done_method or CLAIMED.method),
        proposals=tuple(_proposal(connection, one) for one in of_task(connection, task.task_id)),
    )


def _proposal(connection: apsw.Connection, one: Supersession) -> Proposal:
    score = "" if one.score is None else f", score {one.score:.2f}"
    return Proposal(
        older_href=f"/memory/{one.older_id}",
        older_text=_content(connection, one.older_id),
        newer_href=f"/memory/{one.newer_id}",
        newer_text=_content(connection, one.newer_id),
        why=one.rationale,
        judge=f"{one.judge}{score}",
        state=one.state,
    )


def _content(connection: apsw.Connection, memory_id: str | None) -> str:
    """Return what a record says; "" where it is gone."""
    if memory_id is None:
        return ""
    found = get_memory(connection, memory_id, now_ns=0)
    return text_of(found.content)[:_WORDS_CHARS]


def _places(connection: apsw.Connection, evidence: Sequence[Evidence]) -> list[Place]:
    """Return the newest first, and the very first one at the end."""
    return [_place(connection, one, is_first=one is evidence[0]) for one in reversed(evidence)]


def _place(connection: apsw.Connection, one: Evidence, *, is_first: bool) -> Place:
    short_id = _short_id(one)
    says = sample_of(connection, one) or ""
    return Place(
        kind=one.kind,
        href=_href(one),
        short_id=short_id,
        name=_name(connection, one) or short_id,
        at_ns=one.at_ns,
        is_first=is_first,
        says=says[:_WORDS_CHARS],
    )


def _href(one: Evidence) -> str:
    """Return where the evidence is shown; "" for a figure, which says all there is."""
    folders = {"memory": "memory", "figure": ""}
    folder = folders.get(one.kind, f"{one.kind}s")
    return f"/{folder}/{one.id}" if folder else ""


def _short_id(one: Evidence) -> str:
    if one.kind in ("figure", "report"):
        return one.id
    trace, _, rest = one.id.rpartition("-")
    return f"{trace[:8]}-{rest[:8]}" if trace else one.id[:8]


def _name(connection: apsw.Connection, one: Evidence) -> str:
    """Return what people call the evidence; "" where it is gone or has only an id."""
    try:
        if one.kind == "step":
            return agent_words(get_step(connection, one.id, now_ns=0).name)
        if one.kind == "memory":
            return title_of(get_memory(connection, one.id, now_ns=0))
    except (NotFoundError, AmbiguousIdError):
        pass
    return ""


def _bars(activity: Sequence[int]) -> list[Bar]:
    most, width = max(*activity, 1), 100 / len(activity)
    return [
        Bar(round(at * width, 2), round(_HEIGHT - height, 2), round(height, 2))
        for at, count in enumerate(activity)
        if (height := _HEIGHT * count / most)
    ]
