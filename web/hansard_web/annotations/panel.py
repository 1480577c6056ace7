"""Notes, scores and tags of a run or a step: a panel on their pages, with forms to add more."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import apsw

from hansard_store.annotations.queries import (
    annotations_in_run,
    count_pruned,
    ended_on,
    known_names,
    standing_on,
)
from hansard_store.annotations.rows import MOST_ENDED, Annotation, AnnotationTarget
from hansard_store.errors import InvalidQueryError
from hansard_store.runs.queries import get_run
from hansard_store.steps.queries import StepSkeleton, get_step
from hansard_web.annotations.labels import (
    list_href,
    score_words,
    share_pct,
    source_words,
    sums,
)

_MOST: Final = 1_000  # that stand on one thing
_MOST_ENDED: Final = 2 * MOST_ENDED
_MOST_OF_RUN: Final = 1_000
_MOST_OF_STEPS: Final = 50  # lines about steps on a run's page
_SUGGESTED: Final = 20
_USUAL_NAMES: Final = ("correctness", "helpfulness", "relevance", "faithfulness")


@dataclass(frozen=True, slots=True)
class _Line:
    """One annotation. What it says is hostile text, as everything recorded is."""

    annotation: Annotation  # without an id a span tells it, and nobody can withdraw it here
    figure: str  # number and label of a score
    share_pct: float | None
    source: str
    is_human: bool
    ended: str  # "replaced by …", "withdrawn by …: why"; "" while it stands
    step_href: str  # of an annotation of another thing than the page is about


@dataclass(frozen=True, slots=True)
class TagChip:
    name: str
    href: str
    annotation_id: str
    title: str


@dataclass(frozen=True, slots=True)
class AnnotationPanel:
    """What stands, what did, and what of it is about steps; `say` sums it up."""

    id: str
    run_id: str
    step_id: str | None
    back: str  # the address to come back to without a script
    say: str
    tags: tuple[TagChip, ...]
    scores: tuple[_Line, ...]
    notes: tuple[_Line, ...]
    ended: tuple[_Line, ...]
    pruned: int  # that ended before those, and are not stored
    of_steps: tuple[_Line, ...]
    more_of_steps: int
    names: tuple[str, ...]
    known_tags: tuple[str, ...]
    problem: str = ""
    typed: Mapping[str, str] = field(default_factory=dict)  # what must not be lost
    is_open: bool = False

    @property
    def of(self) -> str:
        return "step" if self.step_id else "run"

    def was(self, form: str, name: str) -> str:
        """Return what was typed into a form that was refused."""
        return self.typed.get(name, "") if self.typed.get("kind") == form else ""


def panel_of_run(connection: apsw.Connection, run_id: str, *, back: str) -> AnnotationPanel:
    """Return the panel of a run, with the annotations of its steps."""
    trace_id = bytes.fromhex(run_id)
    every = annotations_in_run(connection, trace_id, limit=_MOST_OF_RUN)
    of_steps = [one for one in every if one.step_id is not None]
    return _panel(connection, AnnotationTarget(trace_id), run_id, None, of_steps, back=back)


def panel_of_step(connection: apsw.Connection, step: StepSkeleton, *, back: str) -> AnnotationPanel:
    """Return the panel of a step."""
    return _panel(connection, target_of(step), step.run_id, step.step_id, (), back=back)


def target_of(step: StepSkeleton) -> AnnotationTarget:
    """Return a step as annotations name it."""
    return AnnotationTarget(bytes.fromhex(step.run_id), bytes.fromhex(step.span_id), step.side)


# What a request names: a run, or a step.


def find_target(
    connection: apsw.Connection, *, run: str | None = None, step: str | None = None
) -> tuple[str, str]:
    """Return the field and the whole id of what is annotated; raises NotFoundError."""
    now_ns = time.time_ns()
    if step:
        return "step_id", get_step(connection, step, now_ns=now_ns).step_id
    return "run_id", get_run(connection, run or "", now_ns=now_ns).run_id


def read_target(
    connection: apsw.Connection, *, run: str | None, step: str | None
) -> AnnotationTarget | None:
    """Return the run or step that is requested; raises NotFoundError, AmbiguousIdError."""
    if run and step:
        raise InvalidQueryError("step", "name a run or a step, and not both")
    if step:
        return target_of(get_step(connection, step, now_ns=time.time_ns()))
    if run:
        return AnnotationTarget(
            bytes.fromhex(get_run(connection, run, now_ns=time.time_ns()).run_id)
        )
    return None


def _panel(
    connection: apsw.Connection,
    target: AnnotationTarget,
    run_id: str,
    step_id: str | None,
    of_steps: Sequence[Annotation],
    *,
    back: str,
) -> AnnotationPanel:
    standing = standing_on(connection, target, limit=_MOST)
    ended = ended_on(connection, target, limit=_MOST_ENDED)
    scores = [_line(one) for one in standing if one.row.kind == "score"]
    notes = [_line(one) for one in standing if one.row.kind == "note"]
    names = known_names(connection, "score", limit=_SUGGESTED)
    return AnnotationPanel(
        id="annotations-step" if step_id else "annotations-run",
        run_id=run_id,
        step_id=step_id,
        back=back,
        say=_say(len(scores), len(notes), of_steps),
        tags=tuple(_tag(one) for one in reversed(standing) if one.row.kind == "tag"),
        scores=tuple(scores),
        notes=tuple(notes),
        ended=tuple(map(_line, ended)),
        pruned=count_pruned(connection, target),
        of_steps=tuple(_line(one, with_step=True) for one in of_steps[:_MOST_OF_STEPS]),
        more_of_steps=max(len(of_steps) - _MOST_OF_STEPS, 0),
        names=tuple(dict.fromkeys((*names, *_USUAL_NAMES))),
        known_tags=tuple(known_names(connection, "tag", limit=_SUGGESTED)),
    )


def _say(scores: int, notes: int, of_steps: Sequence[Annotation]) -> str:
    own = sums(((scores, "score"), (notes, "note")))
    steps = len({one.step_id for one in of_steps})
    below = f"on {sums(((steps, 'step'),))}" if steps else ""
    return ", ".join(filter(None, (own, below)))


def _tag(one: Annotation) -> TagChip:
    row = one.row
    by = row.author or source_words(row.source)
    title = f"by {by}"
    return TagChip(row.name, list_href(tag=row.name), one.annotation_id or "", title)


def _line(one: Annotation, *, with_step: bool = False) -> _Line:
    row = one.row
    return _Line(
        annotation=one,
        figure=score_words(row.value, row.label),
        share_pct=share_pct(row.value),
        source=source_words(row.source),
        is_human=row.source == "human" and one.annotation_id is not None,
        ended=_ended(one),
        step_href=f"/steps/{one.step_id}" if with_step else "",
    )


def _ended(one: Annotation) -> str:
    row = one.row
    if row.ended is None:
        return ""
    by = f" by {row.ended_by}" if row.ended_by else ""
    why = f": {row.ended_reason}" if row.ended_reason else ""
    return f"{row.ended}{by}{why}"
