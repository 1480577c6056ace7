"""What runs and marked steps are narrowed by: tags and scores.

A score is written `name`, `name:label`, `name>=0.5` or with another comparison. Each condition
must be met by some annotation that stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from hansard_compiler.models.annotations import MOST_NAME, clean_tag
from hansard_store.errors import InvalidQueryError

MOST_CONDITIONS: Final = 8  # of tags, and of scores
_SCORE: Final = re.compile(
    r"(?P<name>[^:<>=]+)(?::(?P<label>.+)|(?P<sign>>=|<=|>|<|=)(?P<value>[+-]?\d{1,15}(?:\.\d{1,9})?))?"
)


@dataclass(frozen=True, slots=True)
class ScoreWanted:
    """A score by its name, and if given its label, or a comparison with its value."""

    name: str
    label: str | None = None
    sign: str = ""  # > >= < <= =
    value: float = 0.0


def read_tags(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return tags as they are kept; raises InvalidQueryError."""
    _check_count("tag", texts)
    try:
        return tuple(dict.fromkeys(clean_tag(text) for text in texts))
    except ValueError as error:
        raise InvalidQueryError("tag", str(error)) from None


def read_scores(texts: tuple[str, ...]) -> tuple[ScoreWanted, ...]:
    """Return what is wanted of scores; raises InvalidQueryError."""
    _check_count("score", texts)
    return tuple(map(_read_score, texts))


def _check_count(name: str, texts: tuple[str, ...]) -> None:
    if len(texts) > MOST_CONDITIONS:
        raise InvalidQueryError(
            name, f"{name} is given {len(texts)} times; {MOST_CONDITIONS} is most"
        )


def _read_score(text: str) -> ScoreWanted:
    found = _SCORE.fullmatch(text.strip())
    if found is None or len(text) > 4 * MOST_NAME:
        raise InvalidQueryError(
            "score", f"score is {text[:80]!r}; write name, name:label, name>=0.5 or name<0.5"
        )
    name, label = found["name"].strip(), found["label"]
    if label is not None:
        return ScoreWanted(name, label=label.strip())
    return ScoreWanted(name, sign=found["sign"] or "", value=float(found["value"] or 0))


@dataclass(frozen=True, slots=True)
class MarkCondition:
    """SQL over one annotation, with what it is bound to."""

    sql: str
    bindings: dict[str, object]


def tag_condition(number: int, tag: str) -> MarkCondition:
    """Return what an annotation meets that is this tag; `number` keeps the bindings apart."""
    return MarkCondition(f"kind = 'tag' AND name = :tag_{number}", {f"tag_{number}": tag})


def score_condition(number: int, wanted: ScoreWanted) -> MarkCondition:
    """Return what an annotation meets that is such a score."""
    sql = f"kind = 'score' AND name = :score_{number}"
    bindings: dict[str, object] = {f"score_{number}": wanted.name}
    if wanted.label is not None:
        sql += f" AND label = :label_{number}"
        bindings[f"label_{number}"] = wanted.label
    elif wanted.sign:
        sql += f" AND value {wanted.sign} :value_{number}"
        bindings[f"value_{number}"] = wanted.value
    return MarkCondition(sql, bindings)


def mark_conditions(
    tags: tuple[str, ...], scores: tuple[ScoreWanted, ...]
) -> tuple[MarkCondition, ...]:
    """Return all of them; each must be met by some annotation."""
    return (
        *(tag_condition(number, tag) for number, tag in enumerate(tags)),
        *(score_condition(number, one) for number, one in enumerate(scores)),
    )
