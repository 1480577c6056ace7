"""`docs/compiler.md` says what is: passes, reason codes, score terms, errors, settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hansard_compiler.compile import errors as compile_errors
from hansard_compiler.compile.config import CompileConfig, Weights
from hansard_compiler.compile.engine import PASSES
from hansard_compiler.compile.errors import CompileError
from hansard_compiler.compile.passes.score import SUBTRACTED, TERMS
from hansard_compiler.compile.reasons import ReasonCode

_TEXT = (Path(__file__).parent.parent.parent / "docs" / "compiler.md").read_text(encoding="utf-8")


def _section(title: str) -> str:
    return _TEXT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


@pytest.mark.covers("CP-53")
def test_the_reason_codes_listed_are_the_reason_codes_there_are() -> None:
    listed = re.findall(r"^\| `(\w+)` \| (.+) \|$", _section("Reason codes"), re.MULTILINE)

    assert listed == [(code.value, code.meaning) for code in ReasonCode]


def test_the_passes_are_listed_in_their_order() -> None:
    listed = re.findall(r"^\| (\d+) \| `(\w+)` \|", _section("The twelve passes"), re.MULTILINE)

    assert listed == [(str(number), name) for number, (name, _) in enumerate(PASSES, start=1)]


def test_the_terms_are_listed_with_their_weights() -> None:
    listed = re.findall(r"^\| `(\w+)` \| .+ \| (\S+) \|$", _section("Scores"), re.MULTILINE)

    weights = Weights()
    assert listed == [
        (term, f"{'−' if term in SUBTRACTED else ''}{getattr(weights, term)}") for term in TERMS
    ]


def test_the_errors_are_listed_with_their_codes() -> None:
    listed = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", _section("Errors"), re.MULTILINE)

    raised = {
        (name, error.code)
        for name, error in vars(compile_errors).items()
        if isinstance(error, type) and issubclass(error, CompileError) and error is not CompileError
    }
    assert sorted(listed) == sorted(raised)


def test_settings_that_are_named_exist() -> None:
    for name in ("required_kinds", "freshness_half_life_s", "stale_after_s", "previous_selected",
                 "hysteresis_margin", "min_score", "max_item_bytes", "cycles",
                 "supersede_trust_gap"):  # fmt: skip
        assert f"`{name}`" in _TEXT
        assert name in CompileConfig.model_fields
