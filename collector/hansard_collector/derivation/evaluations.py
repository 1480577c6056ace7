"""Scores and tags that spans or their log records have, in any dialect: shown beside people's own.

Whoever sends spans can send anything here: what is too long is cut, what is no score is left out,
and nothing of it fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_store.annotations.rows import SpanAnnotation

MOST_SCORES: Final = 200  # of one span
MOST_TAGS: Final = 50  # of one run
_NAME_CHARS: Final = 200
_TEXT_CHARS: Final = 4_000
_SOURCES: Final = {"human": "human", "llm": "llm", "code": "code"}


def scores_of(normal: Normalised, span_name: str) -> tuple[SpanAnnotation, ...]:
    """Return the scores of a span; one without a name has the name of what tells it."""
    return tuple(_scores(normal, normal.name or span_name))[:MOST_SCORES]


def tags_of(normal: Normalised) -> tuple[SpanAnnotation, ...]:
    """Return the tags of a root span as those of its run, each once."""
    tags = dict.fromkeys(text[:_NAME_CHARS] for tag in normal.tags if (text := _text(tag)))
    return tuple(
        SpanAnnotation(name=tag, is_of_run=True, kind="tag") for tag in list(tags)[:MOST_TAGS]
    )


def _scores(normal: Normalised, name: str) -> Iterator[SpanAnnotation]:
    for told in normal.evaluations:
        label, value = _text(told.get("label")), _number(told.get("score"))
        if label is None and value is None:
            label = _text(told.get("score"))
        if label is None and value is None:
            continue
        kind = told.get("annotator_kind")
        yield SpanAnnotation(
            name=(_text(told.get("name")) or name or "score")[:_NAME_CHARS],
            value=value,
            label=None if label is None else label[:_NAME_CHARS],
            explanation=(_text(told.get("explanation")) or "")[:_TEXT_CHARS] or None,
            source=_SOURCES.get(kind.lower()) if isinstance(kind, str) else None,
            author=(_text(told.get("identifier")) or "")[:_NAME_CHARS],
            is_of_run=_is_of_run(told),
        )


def _is_of_run(told: Mapping[str, Any]) -> bool:
    return told.get("level") == "trace"


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    # Lone surrogates, which senders can put into JSON, have no place in a column.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) and value else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
