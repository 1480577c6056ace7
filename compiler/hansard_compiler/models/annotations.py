"""Annotations as they are requested: a note, a score or a tag on a run or a step.

The same models stand before the HTTP API, the forms of the pages, the command line and imports.
Scores have the names of OpenTelemetry's `gen_ai.evaluation.*`: name, score.value, score.label,
explanation.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from hansard_compiler.compile.models import Model, TopLevel
from hansard_compiler.models.json_schema import (
    A_NUMBER,
    NOT_BLANK,
    any_of,
    both,
    exactly_one,
    having,
    left_out,
)
from hansard_compiler.models.memory import Name, Reason, StepId

Source = Literal["human", "code", "llm"]
Kind = Literal["note", "score", "tag"]

KINDS: Final[tuple[Kind, ...]] = ("note", "score", "tag")
MOST_TEXT: Final = 16_384  # characters of a note or an explanation
MOST_EXPECTED: Final = 65_536
MOST_NAME: Final = 64
_MOST_VALUE: Final = 1e12
_TAG: Final = re.compile(r"\w[\w.:/+-]{0,63}")
# A filter says `name:label` and `name>=0.5`.
_NAME: Final = re.compile(r"[^\s:<>=\x00-\x1f\x7f](?:[^:<>=\x00-\x1f\x7f]*[^\s:<>=\x00-\x1f\x7f])?")


def clean_tag(text: str) -> str:
    """Return a tag as it is stored: lower-case, in one word. Raises ValueError."""
    tag = "-".join(text.lower().split())
    if _TAG.fullmatch(tag) is None:
        raise ValueError("a tag has 1 to 64 letters, digits and . : / + - _, the first a letter "
                         "or digit")  # fmt: skip
    return tag


def _is_name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ValueError("a name of a score has none of : < > = in it, nor a break of line")
    return name


def _stripped(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


RunId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Tag: TypeAlias = Annotated[
    str,
    StringConstraints(max_length=256),
    AfterValidator(clean_tag),
    Field(json_schema_extra={"format": "tag"}),
]
ScoreName: TypeAlias = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MOST_NAME),
    AfterValidator(_is_name),
    BeforeValidator(_stripped),
    Field(json_schema_extra={"pattern": f"^{_NAME.pattern}$"}),
]
# Stripped by what stands last: so the bounds are those of a text, which refuse broken Unicode.
Text: TypeAlias = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MOST_TEXT),
    BeforeValidator(_stripped),
    Field(json_schema_extra={"pattern": NOT_BLANK}),
]
Label: TypeAlias = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MOST_NAME),
    BeforeValidator(_stripped),
    Field(json_schema_extra={"pattern": NOT_BLANK}),
]
Expected: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=MOST_EXPECTED)]
Value: TypeAlias = Annotated[
    float, Field(ge=-_MOST_VALUE, le=_MOST_VALUE, allow_inf_nan=False, strict=False), A_NUMBER
]


class ScoreValue(Model):
    """A number, a word, or both."""

    model_config = ConfigDict(json_schema_extra=any_of(having("value"), having("label")))

    value: Value | None = None
    label: Label | None = None


# Kind -> what it needs, and what it may have beside.
_FIELDS: Final[dict[Kind, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "note": (("text",), ("expected",)),
    "score": (("name", "score"), ("explanation", "expected")),
    "tag": (("tag",), ()),
}
_OF_KINDS: Final = ("name", "score", "explanation", "text", "tag", "expected")
ON_ONE: Final = exactly_one("run_id", "step_id")
_SHAPES: Final = [
    both(
        having(*needed, kind={"const": kind}),
        left_out(*(name for name in _OF_KINDS if name not in (*needed, *others))),
        target,
    )
    for kind, (needed, others) in _FIELDS.items()
    for target in ON_ONE
]


class Annotate(TopLevel):
    """Annotate a run, or one of its steps: a note, a score or a tag."""

    model_config = ConfigDict(json_schema_extra=any_of(*_SHAPES))

    run_id: RunId | None = Field(default=None, description="what it is on, whole id: this,")
    step_id: StepId | None = Field(default=None, description="or this")
    kind: Kind
    name: ScoreName | None = Field(default=None, description="of a score")
    score: ScoreValue | None = None
    explanation: Text | None = Field(default=None, description="of a score: why")
    text: Text | None = Field(default=None, description="of a note")
    tag: Tag | None = Field(default=None, description="is made lower-case, in one word")
    expected: Expected | None = Field(
        default=None, description="what the output should have been; of a note or a score"
    )
    source: Source = Field(default="human", description="what kind of judge says so")
    by: Name | None = Field(default=None, description="who; else what is known of the token")

    @property
    def run(self) -> str:
        """The run, by itself or as the step tells it."""
        return (self.run_id or self.step_id or "")[:32]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.run_id is None) == (self.step_id is None):
            raise ValueError("name a run_id or a step_id, and not both")
        needed, others = _FIELDS[self.kind]
        missing = [name for name in needed if getattr(self, name) is None]
        if missing:
            raise ValueError(f"a {self.kind} needs {missing[0]}")
        strange = [
            name
            for name in _OF_KINDS
            if name not in (*needed, *others) and getattr(self, name) is not None
        ]
        if strange:
            raise ValueError(f"a {self.kind} has no {strange[0]}")
        if self.score is not None and self.score.value is None and self.score.label is None:
            raise ValueError("a score has a value, a label, or both")
        return self


class Withdraw(TopLevel):
    """Take an annotation back; it stays, with who did it and why."""

    reason: Reason | None = None
    by: Name | None = None
