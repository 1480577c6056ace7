"""What a person configures: evidence of tools, and phrases of their own; from one TOML file.

```toml
[[evidence]]
tools = ["run_backup"]
required = true
success = { fields = { status = ["done"] }, patterns = ["\\\\bverified\\\\b"], exit_codes = [0] }
failure = { fields = { status = ["partial"] }, patterns = ["\\\\bwarning\\\\b"] }

[[topics]]                      # as in the data sets of hansard.adapters.claims
topic = "invoice run"
tools = ["bill_customers"]
says.en = { subjects = ["invoice run"], success = ["is ~ booked"] }
```
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from hansard.adapters.claims import load_sets
from hansard_collector.evaluation.outcomes import OutcomeEvidence
from hansard_collector.evaluation.topics import Lexicon, Pattern, lexicon_of, tool_key
from hansard_compiler.errors import ConfigError

RULES_VERSION: Final = 1  # raise it when the code reads more than before: all is judged again
_Text = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Signs(_Model):
    fields: dict[_Text, list[str | int | bool]] = Field(default={})
    patterns: list[_Text] = Field(default=[])
    exit_codes: list[int] = Field(default=[])


class _Evidence(_Model):
    tools: list[_Text] = Field(min_length=1)
    required: bool = False
    success: _Signs = _Signs()
    failure: _Signs = _Signs()


class _Action(_Model):
    verbs: list[_Text]
    bases: list[_Text] = Field(default=[])
    objects: list[_Text]


class _Says(_Model):
    subjects: list[_Text] = Field(default=[])
    success: list[_Text] = Field(default=[])
    failure: list[_Text] = Field(default=[])
    whole_success: list[_Text] = Field(default=[])
    whole_failure: list[_Text] = Field(default=[])
    elsewhere: list[_Text] = Field(default=[])
    acted: list[_Action] = Field(default=[])


class _Results(_Model):
    success: list[_Text] = Field(default=[])
    failure: list[_Text] = Field(default=[])


class _Topic(_Model):
    topic: _Text
    tools: list[_Text]
    commands: list[_Text] = Field(default=[])
    qualifiers: bool = False
    results: _Results = _Results()
    says: dict[str, _Says] = Field(default={})


class _File(_Model):
    evidence: list[_Evidence] = Field(default=[])
    topics: list[_Topic] = Field(default=[])


@dataclass(frozen=True, slots=True)
class EvaluationRules:
    """What claims are read and judged by. `digest` changes with any part of it."""

    lexicon: Lexicon
    evidence: Sequence[OutcomeEvidence]
    digest: str


def load_rules(path: Path | None = None) -> EvaluationRules:
    """Return the shipped topics with what a file adds. Raises ConfigError for a file that is none.

    Patterns are of Python's `re`; they are tried when the file is read.
    """
    sets: list[Mapping[str, Any]] = [*load_sets()]
    evidence: Sequence[OutcomeEvidence] = ()
    if path is not None:
        rules = _read(path)
        sets.append({"topics": [one.model_dump() for one in rules.topics]})
        evidence = [_evidence(one, path) for one in rules.evidence]
    digest = hashlib.blake2b(
        json.dumps([RULES_VERSION, sets, repr(evidence)], sort_keys=True).encode(), digest_size=16
    ).hexdigest()
    try:
        return EvaluationRules(lexicon_of(sets, digest=digest), evidence, digest)
    except re.error as error:
        raise ConfigError(f"{path}: {error.pattern!r} is no pattern: {error}") from None


def _read(path: Path) -> _File:
    try:
        return _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{path}: {where}: {first['msg']}") from None


def _evidence(one: _Evidence, path: Path) -> OutcomeEvidence:
    try:
        patterns = Pattern(
            tuple(re.compile(text, re.I | re.M) for text in one.failure.patterns),
            tuple(re.compile(text, re.I | re.M) for text in one.success.patterns),
        )
    except re.error as error:
        raise ConfigError(f"{path}: {error.pattern!r} is no pattern: {error}") from None
    return OutcomeEvidence(
        tools=tuple(_tool_pattern(name) for name in one.tools),
        success_fields=_fields(one.success.fields),
        failure_fields=_fields(one.failure.fields),
        success_exit_codes=tuple(one.success.exit_codes) or (0,),
        patterns=patterns,
        is_required=one.required,
    )


def _tool_pattern(name: str) -> str:
    return name if any(mark in name for mark in "*?[") else tool_key(name)


def _fields(fields: Mapping[str, Sequence[str | int | bool]]) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(
            ("true" if value else "false") if isinstance(value, bool) else str(value)
            for value in values
        )
        for name, values in fields.items()
    }
