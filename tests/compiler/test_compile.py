"""A compile from end to end: twelve passes, five outputs, a receipt for everything."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.canonical import stable_hash
from hansard_compiler.compile.engine import PASSES, compile_context
from hansard_compiler.compile.receipts import COLUMNS_LIMIT
from tests.compiler.compiling import compiled, item, ports, request, request_data
from tests.compiler.crowd import crowd

_ROOT = Path(__file__).parent.parent.parent
_TWELVE = [
    "normalize", "validate", "dedupe", "dependencies", "conflicts", "score", "budget", "compress",
    "policy", "layout", "render", "record",
]  # fmt: skip
_MIXED = [
    item("system", "system", "Be careful."),
    item("doc", content="Totals are rounded half even. " * 30),
    item("twin", content="Totals are rounded half even. " * 30, trust_score=0.1),
    item("late", ttl_seconds=0),
    item("note", "memory", "The rounding mode is bankers.", trust_score=0.9),
    item("rumour", "memory", "The rounding mode is upward.", trust_score=0.2),
    item("big", "file", "x " * 4_000),
    item("asked", "user_msg", "how are totals rounded?"),
]


@pytest.mark.covers("CP-03")
def test_the_twelve_passes_run_in_their_order_and_say_so() -> None:
    result = compiled(_MIXED)

    assert [name for name, _ in PASSES] == _TWELVE
    assert [report.name for report in result.state.reports] == _TWELVE
    assert [(one["number"], one["name"]) for one in result.context().passes] == list(
        enumerate(_TWELVE, start=1)
    )


def test_every_pass_says_something_of_every_item_it_saw() -> None:
    result = compiled(_MIXED, budget=400)

    live = {one["id"] for one in _MIXED}
    for report in result.state.reports:
        assert set(report.seen) == live
        assert [item_id for item_id, _ in report] == list(report.seen)
        live -= {item_id for item_id, told in report if told.decision == "exclude"}
    assert live == set(result.context().selected_items)
    assert [one["pass"] for one in result.trail("late")] == ["normalize", "validate"]
    assert [one["pass"] for one in result.trail("asked")] == _TWELVE


@pytest.mark.covers("CP-02")
def test_a_compile_gives_its_five_outputs() -> None:
    context = compiled(_MIXED, budget=400).context()

    assert context.rendered_payload["messages"]
    assert [one.item_id for one in context.decisions] == [one["id"] for one in _MIXED]
    assert context.token_allocation["used"] <= 400
    assert [one["name"] for one in context.layout] == [
        "stable_prefix", "task_context", "volatile_suffix",
    ]  # fmt: skip
    assert all(one.reason_code and one.pass_name for one in context.decisions)


@pytest.mark.covers("CP-57")
def test_a_renderer_makes_the_request_of_the_neutral_payload() -> None:
    def render(payload: Any) -> dict[str, Any]:
        return {"model": "m", "turns": len(payload["messages"])}

    result = compile_context(request(_MIXED), ports(renderer=render))

    assert result.payload == {"model": "m", "turns": 2}


# --- the same, always -------------------------------------------------------------------------

_COMPILE = """
import json, sys
from tests.compiler.compiling import ports
from hansard_compiler.canonical import stable_hash
from hansard_compiler.compile.engine import compile_context
result = compile_context(json.load(sys.stdin), ports())
print(result.compile_hash, result.context().model_dump_json())
"""


@pytest.mark.slow
@pytest.mark.covers("CP-52", "TS-22")
def test_the_same_input_has_the_same_result_in_every_process() -> None:
    given_ = json.dumps(request_data(_MIXED, budget=400, tool_specs=[{"name": "grep"}]))

    found = {
        subprocess.run(
            [sys.executable, "-c", _COMPILE],
            input=given_,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(_ROOT), "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, zone in (("0", "UTC"), ("1", "Asia/Tokyo"), ("4711", "America/Lima"))
    }

    assert len(found) == 1
    assert compile_context(json.loads(given_), ports()).compile_hash in found.pop()


# Made once and written down: another day, platform or Python must give it too. A change of any pass
# that changes what a compile means changes it on purpose, with a new `compiler_version`.
_HASH = "sha256:4053fe9ab9251784b7ae4bebd75aec6ca32c73717b16c4b811e6a190b88c57a6"
_OF_0_1 = {"compiler_version": 1, "relevance": {"scorer": "bm25"}}
_HASH_OF_0_1 = "sha256:919bec01f5485438f56dfecf770ad0d90eed0301355b9ac767500b5741d3fb88"


@pytest.mark.covers("CP-52")
@pytest.mark.parametrize(("config", "expected"), [({}, _HASH), (_OF_0_1, _HASH_OF_0_1)])
def test_a_hash_is_the_same_on_another_day_and_machine(config: Any, expected: str) -> None:
    result = compiled(_MIXED, budget=400, tool_specs=[{"name": "grep"}], compile_config=config)

    assert result.compile_hash == expected


_OF_A_CROWD = frozenset(
    """within_budget over_budget approval_required below_floor dependency duplicate policy_redacted
    out_of_scope conflict_lost secrets_removed policy_denied expired pinned hard_constraint
    invalidated required_kind required_group compressed_to_fit kept_stable latest_user_request
    review_pending superseded""".split()  # noqa: SIM905  # a list of words reads best as words
)
_CROWD_HASH = "sha256:a0dc00b5b7011bcc3dc0e2e605d6f209eab4127404bce4d9d4f06179616df15b"
_CROWD_HASH_OF_0_1 = "sha256:1c5d5b9e6d5ecb91927b7cc7c8ade913bb3271e93315ffd6251d07a6afb01e6e"
# Of all that a compile of 771 items says: receipts, scores, references, layout, columns, payloads.
_CROWD_DIGEST = "9e4cfa4e147452d8e78e7bb983df1d6cf77f97859449e091ef57c49f5ab659f3"


@pytest.mark.covers("CP-52")
def test_a_large_request_has_the_same_hash_and_receipts_to_the_last_byte() -> None:
    result = compile_context({**crowd(), "token_budget": 27_000}, ports())

    said = {
        "context": result.context().plain(),
        "columns": result.columns(),
        "trails": [result.trail(one.item_id) for one in result.receipts],
        "payloads": result.payloads(),
    }
    assert {one.reason.value for one in result.receipts} >= _OF_A_CROWD
    assert result.compile_hash == _CROWD_HASH
    assert stable_hash(said).hex() == _CROWD_DIGEST


@pytest.mark.covers("CP-52")
def test_a_large_request_of_0_1_keeps_its_hash() -> None:
    given_ = crowd()
    given_["compile_config"] = {**given_["compile_config"], **_OF_0_1}

    assert compile_context(given_, ports()).compile_hash == _CROWD_HASH_OF_0_1


@pytest.mark.covers("CP-52", "TS-22")
@given(
    importances=st.lists(st.integers(0, 100), min_size=1, max_size=6),
    budget=st.integers(20, 500),
)
def test_the_same_input_and_configuration_have_one_hash(
    importances: list[int], budget: int
) -> None:
    items = [
        item(f"i{at}", content=f"text {at} " * 9, importance_score=importance / 100)
        for at, importance in enumerate(importances)
    ]

    first = compiled(items, budget=budget)
    again = compiled(items, budget=budget, request_id="other", run_id="other", step_id="other")

    assert first.compile_hash == again.compile_hash
    assert first.id != again.id
    assert first.payload == again.payload


@pytest.mark.parametrize(
    "change",
    [
        {"now": "2026-03-05T12:00:00Z"},
        {"token_budget": 399},
        {"response_reserve": 1},
        {"model": "other"},
        {"compile_config": {"hysteresis_margin": 0.2}},
        {"context_items": _MIXED[:-1]},
        {"context_items": [*_MIXED[:-1], {**_MIXED[-1], "content": "how are totals rounded"}]},
        {"tool_specs": [{"name": "grep"}]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_input_has_another_hash(change: dict[str, Any]) -> None:
    base = request_data(_MIXED, budget=400)

    one = compile_context(base, ports()).compile_hash
    other = compile_context({**base, **change}, ports()).compile_hash

    assert one != other


def test_the_compile_and_its_passes_know_no_provider_and_no_clock() -> None:
    core = _ROOT / "compiler" / "hansard_compiler" / "compile"
    files = sorted(core.rglob("*.py"))
    imported = {
        name
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else
                     [alias.name for alias in node.names])
    }  # fmt: skip

    assert not [name for name in imported if "provider" in name or name in ("time", "datetime")]


_IMPORTED = """
import sys
import hansard_compiler.compile.engine
print([name for name in sys.modules if "providers" in name or name in ("openai", "anthropic")])
"""


@pytest.mark.slow
@pytest.mark.covers("CP-57")
def test_importing_the_compile_brings_no_provider_along() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _IMPORTED], capture_output=True, text=True, check=True
    )

    assert ended.stdout.strip() == "[]"


# --- receipts ---------------------------------------------------------------------------------


@pytest.mark.covers("CP-53", "CP-54")
def test_receipts_of_five_thousand_items_arrive_whole() -> None:
    items = [item(f"i{at}", content=f"number {at} of many") for at in range(5_000)]

    result = compiled(items, budget=20_000)

    columns = result.columns()
    lengths = {name: len(column) for name, column in columns.items() if isinstance(column, list)}
    assert set(lengths.values()) == {COLUMNS_LIMIT}
    assert columns["hansard.item.total"] == 5_000
    context = json.loads(result.context().model_dump_json())
    assert [one["item_id"] for one in context["decisions"]] == [one["id"] for one in items]
    assert len(context["selected_items"]) + len(context["excluded_items"]) == 5_000


def test_columns_say_what_the_receipts_say() -> None:
    result = compiled(_MIXED, budget=400)

    columns = result.columns()

    names = (
        "ids", "kinds", "decisions", "passes", "reasons", "tokens_before", "tokens_after",
        "scores", "sources", "sections", "payload_refs", "rule_ids",
    )  # fmt: skip
    lengths = {len(column) for column in columns.values() if isinstance(column, list)}
    assert lengths == {len(_MIXED)}
    by_item = {
        row[0]: row[1:]
        for row in zip(*(columns[f"hansard.item.{name}"] for name in names), strict=True)
    }
    kind, decision, pass_name, reason, before, after, score, source, section, ref, rules = by_item[
        "twin"
    ]
    assert (kind, decision, pass_name, reason) == (
        "retrieval_doc",
        "exclude",
        "dedupe",
        "duplicate",
    )
    assert (before, after, score, section, rules) == (-1, 0, "", "", "")
    assert source == "file docs/twin.md"
    assert ref == by_item["doc"][9]
    assert by_item["asked"][4] == by_item["asked"][5] > 0
    assert by_item["asked"][8] == "volatile_suffix"


@pytest.mark.covers("CP-12")
def test_every_original_is_kept_by_reference_whatever_became_of_it() -> None:
    result = compiled(_MIXED, budget=200)

    stored = result.payloads()
    texts = {one["id"]: one["content"] for one in _MIXED}
    assert {receipt.pass_name for receipt in result.receipts} > {"validate", "dedupe", "conflicts"}
    for receipt in result.receipts:
        assert stored[receipt.original_ref].decode() == texts[receipt.item_id]


def test_what_is_of_another_scope_is_not_kept_with_a_compile() -> None:
    result = compiled([item("theirs", content="their words", scope={"user": "other"})])

    assert result.payloads() == {}
    assert result.receipts[0].original_ref.startswith("sha256:")
