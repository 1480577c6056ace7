"""What a compile tells: decisions as columns, contents by reference, why of every item."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard._runtime.recorder import active
from hansard.testing import capture
from hansard_compiler.compile.config import CompileConfig
from hansard_compiler.compile.engine import compile_context
from hansard_compiler.compile.errors import (
    InvalidInput,
    MissingProvenance,
    RequiredOverBudget,
    RequiredWithheld,
)
from hansard_compiler.compile.models import PolicyRule
from hansard_compiler.compile.ports import Ports
from hansard_compiler.errors import NotFoundError
from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.errors import PolicyRuleError
from hansard_compiler.policy.files import shipped_rule_set
from hansard_compiler.providers.transport.failures import NotRenderable
from hansard_compiler.tokens.estimators import estimator_for
from hansard_store.compilations.receipts import receipts_of
from hansard_store.content.payloads import get_payload, read_payload
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from tests.instrumentation.compiling.desk import (
    ITEMS,
    LARGE,
    NOW,
    QUESTION,
    SECRET,
    SYSTEM,
    attributes,
    columns,
    item,
    options,
    running,
    scripted,
)

SHORTENED = [SYSTEM, {**LARGE, "kind": "retrieval_doc"}, QUESTION]
DENY_ORDERS = {
    "id": "no-orders",
    "effect": "deny",
    "applies_to": {"action": "see"},
    "conditions": {"item.id": {"equals": "orders"}},
    "metadata": {"version": "3"},
}


@pytest.mark.covers("SD-02", "OT-06")
def test_the_span_tells_the_decision_about_every_item() -> None:
    with running() as (spans, run), run.step("answer"):
        compiled = run.compile_step(ITEMS, **options())

    assert spans.text() == "invoke_agent clerk\n  answer\n    hansard.compile\n"
    told = columns(spans)
    assert list(told) == [one.item_id for one in compiled.receipts]
    assert len(told) == attributes(spans, "hansard.compile")["hansard.item.total"] == 4
    assert told["almanac"]["decisions"] == "exclude"
    assert told["almanac"]["reasons"] == "over_budget"
    assert told["almanac"]["passes"] == "budget"
    assert told["almanac"]["missed_tokens"] > 0
    assert told["orders"]["decisions"] == "include"
    assert told["orders"]["sections"] == "task_context"
    assert told["orders"]["sources"] == "file docs/orders.md"


@pytest.mark.covers("OT-06")
def test_the_columns_of_the_span_are_what_each_receipt_says() -> None:
    given = [*ITEMS, {**SHORTENED[1], "id": "atlas"}, item("note", content=f"the key is {SECRET}")]

    with running() as (spans, run):
        compiled = run.compile_step(given, policy=[DENY_ORDERS], **options())

    in_span = columns(spans)
    receipts = {one["item_id"]: one for one in compiled.context.plain()["decisions"]}
    assert list(in_span) == list(receipts)
    assert len({one["pass_name"] for one in receipts.values()}) >= 3
    assert len({one["decision"] for one in receipts.values()}) >= 3
    for name, receipt in receipts.items():
        score = (receipt["score_breakdown"] or {}).get("score")
        assert {key: in_span[name][key] for key in _OF_RECEIPTS} == {
            key: receipt[of] for key, of in _OF_RECEIPTS.items()
        }
        score_in_span = in_span[name]["scores"]
        assert (Decimal(score_in_span) * 10**9 if score_in_span else None) == score
        assert in_span[name]["rule_ids"] == ",".join(receipt["rule_ids"])


_OF_RECEIPTS = {
    "kinds": "kind",
    "decisions": "decision",
    "passes": "pass_name",
    "reasons": "reason_code",
    "tokens_before": "original_tokens",
    "tokens_after": "final_tokens",
    "sources": "source",
}
_STORES = """
import sys
import hansard
from tests.instrumentation.compiling.desk import ITEMS, options

hansard.init(embedded=True, data=sys.argv[1])
with hansard.start_run(agent_name="clerk") as run:
    run.compile_step(ITEMS, **options())
"""


@pytest.mark.slow
@pytest.mark.covers("OT-07", "RC-05", "RC-25")
def test_what_the_columns_refer_to_are_the_contents_excluded_ones_included(tmp_path: Path) -> None:
    """Written by another process, and read from its store."""
    root = Path(__file__).parent.parent.parent.parent
    data = DataFolder(tmp_path / "data")
    subprocess.run([sys.executable, "-c", _STORES, str(data.path)], cwd=root, check=True)

    connection = open_reader(data)
    span = connection.execute("SELECT span FROM compilation").get
    kept = {
        one.item_id: read_payload(data, get_payload(connection, one.original or b"")).decode()
        for one in receipts_of(connection, span)
    }
    connection.close()
    assert kept["almanac"] == LARGE["content"]
    assert kept["orders"] == "Order 7: in the post."


def test_a_duplicate_that_left_first_is_kept_as_well() -> None:
    twice = [*ITEMS, item("copy", content="Order 7: in the post.")]

    with running() as (spans, run):
        run.compile_step(twice, **options())

    assert {told["payload_refs"] for told in columns(spans).values()} <= spans.payloads.keys()


@pytest.mark.covers("RC-05", "RC-15")
def test_the_stored_request_compiles_again_to_the_same_hash() -> None:
    with running() as (spans, run):
        compiled = run.compile_step(ITEMS, policy=[DENY_ORDERS], **options())
        recorder = active()

    told = attributes(spans, "hansard.compile")
    stored = json.loads(spans.payloads[told["hansard.compilation.request_ref"]])
    assert recorder is not None
    counter = estimator_for("scripted", "scripted-1")
    again = compile_context(stored, Ports(counter=counter, redactor=recorder.redactor))
    assert again.compile_hash == compiled.hash == told["hansard.compilation.hash"]
    assert again.id == compiled.id
    assert told["hansard.compilation.request_whole"] is True
    assert told["hansard.compilation.ports"] == ()


@pytest.mark.covers("RC-06")
def test_the_stored_result_has_every_receipt() -> None:
    with running() as (spans, run):
        compiled = run.compile_step(ITEMS, **options())

    stored = json.loads(spans.payloads[compiled.recorded.result_ref])
    assert stored == json.loads(compiled.context.model_dump_json())
    assert [one["item_id"] for one in stored["decisions"]] == list(columns(spans))


def test_the_columns_of_thousands_of_items_are_cut_and_the_result_is_whole() -> None:
    many = [SYSTEM, *(item(f"n{at}", content=f"note {at}") for at in range(4_100)), QUESTION]

    with running() as (spans, run):
        compiled = run.compile_step(many, **options())

    assert len(columns(spans)) == 4_000
    assert attributes(spans, "hansard.compile")["hansard.item.total"] == 4_102
    assert len(json.loads(spans.payloads[compiled.recorded.result_ref])["decisions"]) == 4_102


# --- where it belongs -------------------------------------------------------------------------


def test_a_compile_belongs_to_the_step_it_is_told_for_by_id_or_object() -> None:
    with running() as (spans, run):
        first, second = run.step("first"), run.step("second")
        by_object = run.compile_step(ITEMS, step=first, **options())
        by_id = hansard.compile_step(run.run_id, first.step_id, ITEMS, **options())
        second.end()
        first.end()

    assert spans.text() == (
        "invoke_agent clerk\n  first\n    second\n    hansard.compile\n    hansard.compile\n"
    )
    assert by_object.result.request.step_id == by_id.result.request.step_id == first.step_id
    assert by_id.result.request.run_id == run.run_id


def test_a_step_of_another_process_is_told_by_its_ids() -> None:
    trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

    with capture() as spans:
        compiled = hansard.compile_step(trace, f"{trace}-{span}", ITEMS, **options())

    made = spans.one("hansard.compile")
    assert made.parent is not None
    assert made.context is not None
    assert (f"{made.context.trace_id:032x}", f"{made.parent.span_id:016x}") == (trace, span)
    assert compiled.result.request.step_id == f"{trace}-{span}"


@pytest.mark.parametrize("ids", [("run-1", "step-1"), ("0" * 32, f"{'0' * 32}-{'0' * 16}")])
def test_ids_of_a_callers_own_are_kept_and_the_span_stays_here(ids: tuple[str, str]) -> None:
    with running() as (spans, _):
        compiled = hansard.compile_step(*ids, ITEMS, **options())

    request = compiled.result.request
    assert (request.run_id, request.step_id) == ids
    assert spans.text() == "invoke_agent clerk\n  hansard.compile\n"


def test_inputs_in_the_place_of_the_run_are_refused_in_words() -> None:
    with pytest.raises(TypeError, match="pass the inputs by name"):
        hansard.compile_step(ITEMS, **options())  # type: ignore[arg-type]


# --- without a recorder, and what cannot be compiled -------------------------------------------


def test_without_init_a_context_is_compiled_and_nothing_is_recorded() -> None:
    assert active() is None

    compiled = hansard.compile_step(inputs=ITEMS, **options())
    answer = hansard.call_model(compiled)

    assert answer.text == "In the post."
    assert compiled.recorded.request_ref == answer.recorded.request_ref == ""
    assert compiled.why("almanac").receipt.reason_code == "over_budget"


def test_the_same_compile_has_one_hash_whoever_records() -> None:
    with running() as (_, run):
        recorded = run.compile_step(ITEMS, config={"agent": "clerk"}, **options())

    assert (
        hansard.compile_step(inputs=ITEMS, config={"agent": "clerk"}, **options()).hash
        == recorded.hash
    )


@pytest.mark.parametrize(
    ("given", "more", "error", "code"),
    [
        ([item("x", source_ref=None)], {}, MissingProvenance, "missing_provenance"),
        (ITEMS, {"token_budget": 101}, RequiredOverBudget, "required_over_budget"),
        (ITEMS, {"config": {"weights": {"fame": 1}}}, InvalidInput, "invalid_input"),
        (ITEMS, {"policy": [{"id": "x", "effect": "maybe"}]}, PolicyRuleError, "invalid_policy"),
    ],
)
@pytest.mark.covers("RC-12")
def test_what_cannot_be_compiled_raises_and_the_span_says_why(
    given: Any, more: Any, error: type[Exception], code: str
) -> None:
    with running() as (spans, run), pytest.raises(error):
        run.compile_step(given, **{**options(), **more})

    told = attributes(spans, "hansard.compile")
    assert told["error.type"].endswith(error.__name__)
    assert told["hansard.error.code"] == getattr(error, "code", code)
    assert spans.text() == "invoke_agent clerk\n  hansard.compile [error]\n"
    assert spans.payloads == {}


# --- policy -----------------------------------------------------------------------------------


@pytest.mark.covers("PO-03", "RC-10")
def test_every_check_of_policy_is_told_allows_included() -> None:
    with running() as (spans, run):
        compiled = run.compile_step(ITEMS, policy=[DENY_ORDERS], **options())

    told = attributes(spans, "hansard.policy.check")
    checked = dict(
        zip(told["hansard.policy.subjects"], told["hansard.policy.effects"], strict=True)
    )
    assert checked == {one.item_id: "allow" for one in compiled.receipts} | {"orders": "deny"}
    assert told["hansard.policy.rule_ids"].count("no-orders") == 1
    assert "3" in told["hansard.policy.versions"]
    assert (told["hansard.policy.total"], told["hansard.policy.denied"]) == (4, 1)
    assert columns(spans)["orders"]["rule_ids"] == "no-orders"
    assert [check.rule_id for check in compiled.denied] == ["no-orders"]
    whole = json.loads(spans.payloads[told["hansard.policy.checks_ref"]])
    assert [check["effect"] for check in whole] == list(told["hansard.policy.effects"])


def test_an_item_that_waits_for_a_person_is_left_out_and_told() -> None:
    waiting: Any = {**DENY_ORDERS, "id": "ask", "name": "ask", "effect": "require_approval"}

    with running() as (spans, run):
        compiled = run.compile_step(ITEMS, policy=PolicyRule(**waiting), **options())

    assert [check.rule_id for check in compiled.approvals_needed] == ["ask"]
    assert compiled.why("orders").receipt.reason_code == "approval_required"
    assert not compiled.why("orders").is_included
    assert attributes(spans, "hansard.policy.check")["hansard.policy.approvals"] == 1


def test_the_checks_of_a_compile_that_failed_are_told_too() -> None:
    rule = {**DENY_ORDERS, "conditions": {"item.kind": "system"}}

    with running() as (spans, run), pytest.raises(RequiredWithheld):
        run.compile_step(ITEMS, policy=[rule], **options())

    assert attributes(spans, "hansard.policy.check")["hansard.policy.denied"] == 1
    assert spans.text() == (
        "invoke_agent clerk\n  hansard.compile [error]\n    hansard.policy.check\n"
    )


@pytest.mark.parametrize(
    "policy",
    [
        "support-agent",
        shipped_rule_set("support-agent"),
        [shipped_rule_set("support-agent"), DENY_ORDERS],
        Policy([shipped_rule_set("support-agent")]),
    ],
)
def test_rule_sets_decide_and_the_span_says_that_they_came_from_outside(policy: Any) -> None:
    with running() as (spans, run):
        run.compile_step(ITEMS, policy=policy, **options())

    assert attributes(spans, "hansard.compile")["hansard.compilation.ports"] == ("policy",)


# --- what is kept -----------------------------------------------------------------------------


@pytest.mark.covers("RC-21")
def test_a_secret_is_nowhere_in_the_record() -> None:
    given = [
        *ITEMS,
        item("note", content=f"the key is {SECRET}"),
        item("doc", content={"password": "Zx81kQ93mVb72LpRtW5y", "n": 1}),
        item("uri", source_ref={"source_type": "file", "uri": f"https://x/?api_key={SECRET}"}),
    ]

    with running() as (spans, run):
        compiled = run.compile_step(given, **options())
        run.call_model(compiled)

    told = repr([dict(span.attributes or {}) for span in spans]).encode()
    everything = told + b"".join(spans.payloads.values())
    assert SECRET.encode() not in everything
    assert b"Zx81kQ93" not in everything
    assert attributes(spans, "hansard.compile")["hansard.compilation.request_whole"] is False
    refs = {told["payload_refs"] for told in columns(spans).values()}
    assert refs <= spans.payloads.keys()


def test_what_is_above_the_clearance_is_in_no_payload() -> None:
    given = [*ITEMS, item("vault", content="the plans of the vault", sensitivity="secret")]

    with running() as (spans, run):
        compiled = run.compile_step(given, **options())

    assert compiled.why("vault").receipt.reason_code == "sensitivity_withheld"
    assert b"plans of the vault" not in b"".join(spans.payloads.values())
    stored = json.loads(spans.payloads[compiled.recorded.request_ref])
    assert "withheld" in stored["context_items"][-1]["content"]


@pytest.mark.covers("RC-20")
def test_metadata_only_keeps_decisions_and_no_content() -> None:
    with running(retention="metadata_only") as (spans, run):
        compiled = run.compile_step(ITEMS, **options())
        answer = run.call_model(compiled)

    told = columns(spans)
    assert told["almanac"]["reasons"] == "over_budget"
    assert told["almanac"]["tokens_before"] > 1_000
    assert told["almanac"]["payload_refs"].startswith("hmac-sha256:")
    assert spans.payloads == {}
    assert answer.recorded.request_ref == ""
    everything = repr([dict(span.attributes or {}) for span in spans])
    assert "tide" not in everything
    assert "Order 7" not in everything
    digest = hashlib.sha256(LARGE["content"].encode()).hexdigest()
    assert digest not in everything


# --- what a program makes of it ----------------------------------------------------------------


def test_why_is_told_of_every_item_in_a_sentence_and_in_numbers() -> None:
    with running() as (_, run):
        compiled = run.compile_step(ITEMS, **options())

    why = compiled.why("almanac")
    assert str(why).startswith("almanac: exclude (over_budget, pass budget); ")
    assert "tokens too many" in str(why)
    assert [one["pass"] for one in why.trail][:2] == ["normalize", "validate"]
    assert why.receipt.score_breakdown["score"] == sum(
        term["points"] for name, term in why.receipt.score_breakdown.items() if name != "score"
    )
    with pytest.raises(NotFoundError):
        compiled.why("nobody")


def test_a_compiled_step_shows_what_goes_out() -> None:
    tool = {"name": "find", "description": "Find an order.", "parameters": {"type": "object"}}
    memory = {
        "id": "m1",
        "memory_type": "preference",
        "subject": "tone",
        "content": "Answer in one sentence.",
        "confidence": 0.9,
    }

    with running() as (_, run):
        compiled = run.compile_step(ITEMS, tools=[tool], memory=[memory], **options())

    assert compiled.system[0] == "You are a clerk."
    assert compiled.messages[-1]["parts"][0]["text"] == "Where is order 7?"
    assert [one["name"] for one in compiled.tools] == ["find"]
    assert "m1" in compiled.selected
    assert compiled.tokens["used"] <= 500
    assert compiled.render()["messages"][0]["role"] == "system"
    assert compiled.render("anthropic", max_output_tokens=9)["max_tokens"] == 9
    with pytest.raises(NotRenderable):
        compiled.render("anthropic", seed=7)
    with pytest.raises(TypeError, match="no option fame"):
        compiled.render("anthropic", fame=1)


def test_the_previous_compile_of_a_conversation_keeps_its_items() -> None:
    first = hansard.compile_step(inputs=ITEMS, **options())

    second = hansard.compile_step(
        inputs=ITEMS, previous=first, config=CompileConfig(agent="a"), **options()
    )

    assert second.result.request.compile_config.previous_selected == first.selected
    assert second.stable_prefix_hash == first.stable_prefix_hash


def test_time_counts_from_the_clock_where_none_is_told(tmp_path: Path) -> None:
    undated = {key: value for key, value in item("x").items() if key != "created_at"}
    path = tmp_path / "a.txt"
    given = {key: value for key, value in options().items() if key != "now"}

    compiled = hansard.compile_step(inputs=[SYSTEM, undated, path, QUESTION], **given)

    request = compiled.result.request
    assert request.context_items[1].created_at == request.now
    assert request.now.isoformat() > NOW
    assert request.context_items[2].content == {"path": str(path)}


def test_a_span_that_is_not_sampled_costs_no_payload() -> None:
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    with running(sampler=ALWAYS_OFF) as (spans, run):
        compiled = run.compile_step(ITEMS, **options())
        answer = run.call_model(compiled)

    assert answer.text == "In the post."
    assert spans.payloads == {}


# --- compression by a model --------------------------------------------------------------------


@pytest.mark.covers("CP-58")
def test_a_model_that_shortens_is_a_step_inside_the_compile() -> None:
    model = scripted(say="Tides come and go.")

    with running() as (spans, run):
        compressor = hansard.model_compressor(model, "scripted-1")
        compiled = run.compile_step(SHORTENED, compressor=compressor, **options())

    assert spans.text() == ("invoke_agent clerk\n  hansard.compile\n    chat scripted-1\n")
    told = columns(spans)["almanac"]
    assert told["decisions"] == "compress"
    assert spans.payloads[told["final_refs"]] == b"Tides come and go."
    assert spans.payloads[told["payload_refs"]].decode() == LARGE["content"]
    assert compiled.recorded.ports == ("compressor",)


@pytest.mark.parametrize(
    "line", [{"fail": "overloaded"}, {"say": " "}, {"say": "a", "finish": "length"}]
)
def test_a_model_that_fails_to_shorten_replaces_nothing(line: Any) -> None:
    # Without a place to cut it at, so that nothing else shortens it either.
    content = "".join(sha256(bytes([number])).hexdigest() for number in range(200))
    items = [SYSTEM, {**LARGE, "kind": "retrieval_doc", "content": content}, QUESTION]
    with running() as (spans, run):
        compressor = hansard.model_compressor(scripted(**line), "scripted-1")
        compiled = run.compile_step(items, compressor=compressor, **options())

    told = columns(spans)["almanac"]
    assert (told["decisions"], told["reasons"]) == ("exclude", "compression_failed")
    assert not compiled.why("almanac").is_included
    assert spans.payloads[told["payload_refs"]].decode() == content


def test_a_run_that_is_not_recorded_compiles_and_asks_all_the_same() -> None:
    with hansard.start_run("clerk") as run, run.step("answer"):
        answer = run.call_model(run.compile_step(ITEMS, **options()))

    assert run.run_id is None
    assert answer.text == "In the post."


@pytest.mark.covers("CP-59")
@pytest.mark.parametrize(
    ("scorer", "name"),
    [(None, "pieces/1"), ("embeddings", "wordllama/1"), ("bm25", "bm25/1"), ("bm25/1", "bm25/1")],
)
def test_a_scorer_is_chosen_by_name_and_stands_in_span_and_receipts(
    scorer: str | None, name: str
) -> None:
    with running() as (spans, run):
        compiled = run.compile_step(ITEMS, **options(relevance=scorer))

    told = attributes(spans, "hansard.compile")
    assert told["hansard.compilation.scorer"] == name
    assert told["hansard.compilation.compiler_version"] == 2
    assert list(told["hansard.compilation.ports"]) == []
    assert compiled.result.request.compile_config.relevance.scorer == name


def test_a_function_for_relevance_is_own_and_a_name_that_is_none_is_refused() -> None:
    with running() as (spans, run):
        run.compile_step(ITEMS, **options(relevance=lambda query, texts: [0] * len(texts)))
    with running() as (_, run), pytest.raises(InvalidInput, match="expected one of bm25, pieces"):
        run.compile_step(ITEMS, **options(relevance="tfidf"))

    told = attributes(spans, "hansard.compile")
    assert told["hansard.compilation.scorer"] == "own"
    assert list(told["hansard.compilation.ports"]) == ["relevance"]


def test_options_that_are_missing_or_unknown_are_named() -> None:
    needed = {"model": "gpt-6-luna", "provider": "openai", "token_budget": 1_000}
    for name in needed:
        left: Any = {key: value for key, value in needed.items() if key != name}
        with pytest.raises(InvalidInput, match=f"{name}: is missing"):
            hansard.compile_step(inputs=["go on"], **left)

    mistyped: Any = {**needed, "response_reserv": 100}
    with pytest.raises(InvalidInput, match="response_reserv: is no option"):
        hansard.compile_step(inputs=["go on"], **mistyped)
