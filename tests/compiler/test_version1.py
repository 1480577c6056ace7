"""Compiles that 0.1 made and stored come out the same, to the hash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hansard_compiler.compile.engine import compile_context
from hansard_compiler.compile.ports import Ports
from hansard_compiler.compile.record import recorded_request, stored_request
from hansard_compiler.diff.changes import changes_between, reverted
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.tokens.estimators import estimator_for
from tests.compiler.compiling import compiled, item

_FILE = Path(__file__).parent.parent / "fixtures" / "compiles" / "0.1.json"
_STORED = json.loads(_FILE.read_text(encoding="utf-8"))
_PORTS = Ports(estimator_for("local", "test"), Redactor(_STORED["key"].encode()))


@pytest.mark.covers("CP-52", "RC-15")
@pytest.mark.parametrize("made", _STORED["compiles"], ids=lambda made: str(made["name"]))
def test_a_compile_stored_by_0_1_comes_to_its_hash(made: Any) -> None:
    result = compile_context(recorded_request(json.dumps(made["request"]).encode()), _PORTS)

    assert result.compile_hash == made["hash"]
    assert {one.item_id: one.reason.value for one in result.receipts} == made["reasons"]
    assert (result.scorer, result.request.compile_config.compiler_version) == ("bm25/1", 1)


def test_the_request_of_0_1_keeps_its_bytes_when_it_is_stored_again() -> None:
    made = _STORED["compiles"][0]
    result = compile_context(recorded_request(json.dumps(made["request"]).encode()), _PORTS)

    assert json.loads(stored_request(result).data) == made["request"]


@pytest.mark.covers("CP-52")
@pytest.mark.parametrize("scorer", ["bm25", "pieces", "embeddings"])
def test_a_new_request_writes_its_scorer_and_comes_to_its_hash(scorer: str) -> None:
    items = [
        item("doc", content="Refunds are paid in ten days."),
        item("ask", "user_msg", "refund?"),
    ]
    first = compiled(items, compile_config={"relevance": {"scorer": scorer}})

    again = compile_context(recorded_request(stored_request(first).data), first.state.ports)

    assert again.compile_hash == first.compile_hash
    assert again.request.compile_config.compiler_version == 2
    assert again.scorer == first.scorer == first.context().scorer
    breakdown = first.context().decisions[0].score_breakdown
    assert breakdown["relevance"]["scorer"] == first.scorer


@pytest.mark.covers("CP-52")
def test_each_scorer_has_a_hash_of_its_own() -> None:
    items = [item("doc", content="Refunds are paid in ten days.")]
    hashes = {
        compiled(items, compile_config={"relevance": {"scorer": scorer}}).compile_hash
        for scorer in ("bm25", "pieces", "embeddings")
    }

    assert len(hashes) == 3


def test_a_diff_with_a_compile_of_0_1_names_the_compiler_and_the_scorer() -> None:
    old = recorded_request(json.dumps(_STORED["compiles"][0]["request"]).encode())
    config = old.compile_config.model_copy(update={"compiler_version": 2})
    new = old.model_copy(update={"compile_config": config})

    found = changes_between(old, new)

    assert [(one.name, one.left, one.right) for one in found] == [
        ("setting.compiler_version", 1, 2)
    ]
    assert reverted(new, old, [found[0].name]) == old


def test_texts_that_0_1_could_not_shorten_stay_so_in_its_compiles() -> None:
    long = item("long", content="退款在十天内支付到卡上。" * 100)
    of_0_1 = {"compiler_version": 1, "relevance": {"scorer": "bm25"}}

    then, now = (compiled([long], budget=300, compile_config=config) for config in (of_0_1, {}))

    assert [one.receipts[0].reason for one in (then, now)] == [
        "compression_failed",
        "compressed_to_fit",
    ]
