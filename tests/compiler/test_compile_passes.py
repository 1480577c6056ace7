"""Passes 1 to 5: what comes in, what is refused, what is left out before anything is rated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hansard_compiler.compile.engine import compile_context
from hansard_compiler.compile.errors import (
    DependencyCycle,
    InvalidBudget,
    InvalidInput,
    InvalidItem,
    ItemTooLarge,
    MissingProvenance,
    OrphanToolResult,
    RequiredWithheld,
    UnknownSchemaVersion,
)
from hansard_compiler.compile.inputs import request_from
from tests.compiler.compiling import compiled, item, ports, reasons, request, request_data

_CALL = {"type": "tool_call", "id": "c1", "name": "grep", "arguments": {"q": "x"}}
_RESULT = {"type": "tool_result", "id": "c1", "content": "found"}


def _said(item_id: str, kind: str, *parts: Any, **more: Any) -> Any:
    role = {"user_msg": "user", "assistant_msg": "assistant", "tool_result": "tool"}[kind]
    return item(item_id, kind, {"role": role, "parts": list(parts)}, **more)


# --- 1 normalize ------------------------------------------------------------------------------


@pytest.mark.covers("CP-04")
def test_inputs_of_every_shape_become_items() -> None:
    shapes: list[Any] = [
        "a bare text",
        {"role": "user", "content": "what is x?"},
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"path": "src/money.py", "content": "def to_cents(): ..."},
        Path("notes") / "plan.md",
        {"name": "grep", "input_schema": {"type": "object"}},
        {"anything": ["else", 1]},
        item("ready", "plan", "first look, then cut"),
    ]

    result = compile_context(request_data(shapes), ports())

    kinds = [one.kind for one in result.state.items]
    assert kinds == [
        "other", "user_msg", "system", "file", "file", "tool_schema", "other", "plan",
    ]  # fmt: skip
    assert {one.decision for one in result.receipts} == {"include"}
    assert result.receipts[3].source == "file src/money.py"
    assert result.trail(result.receipts[3].item_id)[0]["notes"] == "given as path"
    assert result.trail("ready")[0]["notes"] is None


@pytest.mark.covers("CP-04")
@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function",
                 "function": {"name": "grep", "arguments": '{"q": "x"}'}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "found"},
        ),
        (
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "grep", "input": {"q": "x"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "found"}]},
        ),
        (
            {"type": "function_call", "call_id": "c1", "name": "grep", "arguments": '{"q": "x"}'},
            {"type": "function_call_output", "call_id": "c1", "output": "found"},
        ),
        (
            {"role": "assistant", "parts": [_CALL]},
            {"role": "tool", "parts": [_RESULT]},
        ),
    ],
    ids=["chat", "blocks", "items", "normal"],
)  # fmt: skip
def test_messages_of_every_usual_form_are_one_form(call: Any, answer: Any) -> None:
    result = compile_context(request_data([call, answer]), ports())

    assert result.payload["messages"] == [
        {"role": "assistant", "parts": [_CALL]},
        {"role": "tool", "parts": [_RESULT]},
    ]


def test_ids_made_of_content_are_the_same_from_turn_to_turn_and_unique() -> None:
    first = compile_context(request_data(["note", "other note", "note"]), ports())
    second = compile_context(request_data(["other note", "note"]), ports())

    ids = [one.item_id for one in first.receipts]
    assert len(set(ids)) == 3
    assert {one.item_id for one in second.receipts} <= set(ids)


@pytest.mark.covers("CP-01")
def test_all_ten_inputs_are_taken_and_decided_about() -> None:
    result = compiled(
        [
            item("asked", "user_msg", "make the test pass", created_at="2026-03-04T11:59:00Z"),
            item("history", "assistant_msg", "I looked.", created_at="2026-03-04T11:00:00Z"),
            item("plan", "plan", "1. read 2. patch"),
            item("doc", "retrieval_doc", "rounding modes"),
            item("result", "tool_result", "1 failed", source_ref={"source_type": "tool"}),
            item("file", "file", "def to_cents(): ..."),
            item("rule", "policy", "write tools ask first", source_ref={"source_type": "policy"}),
            item("limit", "constraint", "do not edit tests"),
            item("approval", "handoff", "go ahead", source_ref={"source_type": "human_approval"}),
        ],
        memory_records=[
            {"id": "m1", "memory_type": "fact", "subject": "money", "content": "is Decimal",
             "confidence": 0.9}
        ],
        tool_specs=[{"name": "grep", "parameters": {}}],
    )  # fmt: skip

    assert {one.kind for one in result.receipts} == {
        "user_msg", "assistant_msg", "plan", "retrieval_doc", "tool_result", "file", "policy",
        "constraint", "handoff", "memory", "tool_schema",
    }  # fmt: skip
    assert all(one.decision == "include" for one in result.receipts)
    assert next(one for one in result.receipts if one.item_id == "m1").source == "memory memory:m1"


# --- 2 validate -------------------------------------------------------------------------------


@pytest.mark.covers("CP-05")
def test_an_item_without_a_kind_is_refused_by_name() -> None:
    broken = {key: value for key, value in item("who").items() if key != "kind"}

    with pytest.raises(InvalidItem) as refused:
        compile_context(request_data([item("fine"), broken]), ports())

    assert (refused.value.item_id, refused.value.field) == ("who", "kind")


@pytest.mark.covers("CP-05")
def test_an_unknown_kind_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidInput) as refused:
        request_from(request_data([item("a"), item("b", "poem")]))

    assert refused.value.problems[0].where == "context_items.1.kind"


@pytest.mark.covers("CP-05")
def test_every_item_leaves_validation_with_id_kind_and_hash() -> None:
    result = compiled([item("a")], tool_specs=[{"name": "grep"}])

    for one in result.state.items:
        assert one.id
        assert one.kind
        assert one.stable_hash.startswith("sha256:")


@pytest.mark.covers("CP-54")
def test_items_without_a_source_are_refused_with_their_number() -> None:
    items = [item("a"), item("b", source_ref=None), item("c", source_ref=None)]

    with pytest.raises(MissingProvenance) as refused:
        compiled(items)

    assert (refused.value.item_ids, refused.value.of) == (["b", "c"], 3)


@pytest.mark.parametrize(("budget", "reserve"), [(-1, 0), (10, -1), (10, 11)])
def test_impossible_budgets_are_refused_with_their_numbers(budget: int, reserve: int) -> None:
    with pytest.raises(InvalidBudget) as refused:
        compiled([item("a")], budget=budget, response_reserve=reserve)

    assert (refused.value.token_budget, refused.value.response_reserve) == (budget, reserve)


@pytest.mark.parametrize("content", ["x" * 20_000_000, {"text": "é" * 10_000_000}])
def test_an_item_of_20_mb_is_refused_with_its_size(content: Any) -> None:
    with pytest.raises(ItemTooLarge) as refused:
        compiled([item("a"), item("huge", content=content)])

    assert refused.value.item_id == "huge"
    assert refused.value.found_bytes >= 20_000_000
    assert refused.value.most_bytes == 8_388_608


def test_an_unknown_schema_version_is_refused() -> None:
    with pytest.raises(UnknownSchemaVersion):
        compile_context({**request_data([item("a")]), "schema_version": "7"}, ports())


def test_two_items_of_one_id_are_refused() -> None:
    with pytest.raises(InvalidItem, match="used by 2 items"):
        compiled([item("a", content="x"), item("a", content="y")])


@pytest.mark.covers("CP-56")
def test_expired_items_and_those_of_other_scopes_are_out_with_their_reason() -> None:
    items = [
        item("late", created_at="2026-03-04T11:00:00Z", ttl_seconds=3_500),
        item("timely", created_at="2026-03-04T11:00:00Z", ttl_seconds=3_700),
        item("renewed", created_at="2026-03-04T10:00:00Z", ttl_seconds=3_700,
             freshness_ts="2026-03-04T11:30:00Z"),
        item("theirs", scope={"project": "p2"}),
        item("ours", scope={"project": "p1", "user": "*"}),
        item("either", scope={"project": ["p1", "p3"]}),
        item("unnamed", scope={"tenant": "t"}),
    ]  # fmt: skip

    result = compiled(items, compile_config={"scope": {"project": "p1"}})

    assert reasons(result) == {
        "late": "expired", "timely": "within_budget", "renewed": "within_budget",
        "theirs": "out_of_scope", "ours": "within_budget", "either": "within_budget",
        "unnamed": "out_of_scope",
    }  # fmt: skip
    notes = {one.item_id: one.note for one in result.receipts}
    assert notes["late"] == "100 s past its time"
    assert notes["theirs"] == "differs in project"


# --- 3 dedupe ---------------------------------------------------------------------------------


@pytest.mark.covers("CP-06", "TS-02")
@pytest.mark.parametrize("backwards", [False, True])
def test_of_two_copies_the_more_trusted_one_is_kept(backwards: bool) -> None:
    items = [
        item("low", content="same", trust_score=0.4),
        item("high", content="same", trust_score=0.9),
    ]

    result = compiled(items[::-1] if backwards else items)

    assert reasons(result) == {"low": "duplicate", "high": "within_budget"}
    low = next(one for one in result.receipts if one.item_id == "low")
    assert (low.pass_name, low.related_item_id) == ("dedupe", "high")


@pytest.mark.covers("CP-06", "TS-02")
def test_a_kept_copy_stays_as_guarded_as_the_copy_that_left() -> None:
    items = [
        item("open", content="same", trust_score=0.9, sensitivity="public"),
        item("closed", content="same", trust_score=0.4, sensitivity="secret"),
    ]

    assert reasons(compiled(items)) == {"open": "sensitivity_withheld", "closed": "duplicate"}


@pytest.mark.covers("TS-02")
def test_what_depends_on_a_dropped_copy_depends_on_the_kept_one() -> None:
    items = [
        item("kept", content="same " * 40, trust_score=0.9),
        item("gone", content="same " * 40, trust_score=0.1),
        item("needs", content="x", dependencies=["gone"], tags=["pinned"]),
    ]

    result = compiled(items, budget=84)

    assert result.state.needs == {"needs": ("kept",)}
    assert reasons(result)["kept"] == "dependency"


def _from(item_id: str, kind: str, content: Any, **source: Any) -> Any:
    source = {"source_type": "file", "uri": f"results/{item_id}", **source}
    return item(item_id, kind, content, source_ref=source)


@pytest.mark.covers("CP-06")
@pytest.mark.parametrize("kind", ["file", "memory", "artifact", "retrieval_doc", "constraint"])
@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("PASS", ({"uri": "results/test_login"}, {"uri": "results/test_refund"})),
        ("Paid.", ({"title": "Invoice 1"}, {"title": "Invoice 2"})),
        ('{"status":"paid"}', ({"uri": "inv/1.json"}, {"uri": "inv/2.json"})),
    ],
)
def test_a_copy_of_another_place_is_sent_once_and_names_both(
    kind: str, content: str, names: tuple[dict[str, str], ...]
) -> None:
    items = [_from(name, kind, content, **one) for name, one in zip("ab", names, strict=True)]

    result = compiled(items)

    assert reasons(result) == {"a": "within_budget", "b": "duplicate"} or kind == "constraint"
    sent = str(result.context().plain()["rendered_payload"])
    assert all(value in sent for one in names for value in one.values())
    assert sent.count(content if content != '{"status":"paid"}' else "paid") == 1


def test_a_header_names_eight_further_places_and_counts_the_rest() -> None:
    items = [_from(f"n{number:02}", "file", "PASS") for number in range(12)]

    sent = str(compiled(items).context().plain()["rendered_payload"])

    assert sent.count("results/n") == 9
    assert "; 3 more]" in sent


@pytest.mark.covers("TS-02")
def test_the_same_thing_said_twice_was_said_twice() -> None:
    items = [
        item("first", "user_msg", "continue", created_at="2026-03-04T10:00:00Z"),
        item("again", "user_msg", "continue", created_at="2026-03-04T11:00:00Z"),
    ]

    assert reasons(compiled(items)) == {"first": "within_budget", "again": "latest_user_request"}


# --- 4 dependencies ---------------------------------------------------------------------------


@pytest.mark.covers("CP-07")
def test_dependencies_are_followed_at_any_depth() -> None:
    items = [
        item("a", content="wanted " * 10, dependencies=["b"], importance_score=1.0),
        item("b", content="needed " * 10, dependencies=["c"], importance_score=0.0),
        item("c", content="deep " * 14, importance_score=0.0),
        item("rival", content="rival " * 12, importance_score=0.9),
    ]

    result = compiled(items, budget=90)

    assert reasons(result) == {
        "a": "within_budget", "b": "dependency", "c": "dependency", "rival": "over_budget",
    }  # fmt: skip
    assert {one.item_id for one in result.receipts if one.score} == {"a", "b", "c", "rival"}


@pytest.mark.covers("CP-07")
def test_a_dependency_that_is_no_candidate_is_told() -> None:
    result = compiled([item("a", dependencies=["nowhere"])])

    assert reasons(result) == {"a": "within_budget"}
    assert result.trail("a")[3]["notes"] == "depends on what is no candidate: nowhere"


def test_a_ring_of_dependencies_is_refused_and_named() -> None:
    items = [
        item("a", dependencies=["b"]),
        item("b", dependencies=["c"]),
        item("c", dependencies=["a"]),
        item("self", dependencies=["self"]),
        item("fine", dependencies=["a"]),
    ]

    with pytest.raises(DependencyCycle) as refused:
        compiled(items)

    assert sorted(sorted(ring) for ring in refused.value.rings) == [["a", "b", "c"], ["self"]]


def test_a_ring_that_only_copies_make_is_no_ring() -> None:
    itself = [item("a", content="same", dependencies=["copy"]), item("copy", content="same")]
    longer = [
        item("a", content="same", dependencies=["b"]),
        item("b", dependencies=["copy"]),
        item("copy", content="same", trust_score=0.0),
    ]

    assert reasons(compiled(itself)) == {"a": "within_budget", "copy": "duplicate"}
    assert reasons(compiled(longer)) == {
        "a": "within_budget", "b": "within_budget", "copy": "duplicate",
    }  # fmt: skip


@pytest.mark.covers("CP-07")
def test_a_ring_can_be_taken_together_instead() -> None:
    ring = [item("a", dependencies=["b"]), item("b", dependencies=["a"])]
    rest = [item("c", content="long " * 30, dependencies=["a"])]

    fits = compiled([*ring, *rest], compile_config={"cycles": "together"})
    tight = compiled([*ring, *rest], budget=35, compile_config={"cycles": "together"})

    assert {one.decision for one in fits.receipts} == {"include"}
    assert reasons(tight) == {"a": "within_budget", "b": "within_budget", "c": "over_budget"}


def test_a_chain_of_thousands_is_followed_without_recursion() -> None:
    items = [item(f"i{at}", dependencies=[f"i{at + 1}"]) for at in range(4_999)]

    result = compiled([*items, item("i4999")], budget=100_000)

    assert {one.decision for one in result.receipts} == {"include"}


def test_a_result_whose_call_is_nowhere_is_refused_with_its_number() -> None:
    items = [
        _said("call", "assistant_msg", _CALL),
        _said("result", "tool_result", _RESULT),
        _said("orphan", "tool_result", {**_RESULT, "id": "c9"}),
    ]

    with pytest.raises(OrphanToolResult) as refused:
        compiled(items)

    assert (refused.value.orphans, refused.value.calls) == ([("orphan", "c9")], 1)


def test_a_result_leaves_with_its_call() -> None:
    items = [
        _said("call", "assistant_msg", _CALL, ttl_seconds=0),
        _said("result", "tool_result", _RESULT),
    ]

    result = compiled(items)

    assert reasons(result) == {"call": "expired", "result": "group_withheld"}
    assert result.receipts[1].related_item_id == "call"


def test_a_call_stays_for_a_result_that_blocks() -> None:
    items = [
        _said("call", "assistant_msg", _CALL, ttl_seconds=0),
        _said("result", "tool_result", _RESULT, tags=["blocking"]),
    ]

    assert reasons(compiled(items)) == {
        "call": "required_group", "result": "blocking_tool_result",
    }  # fmt: skip


def test_a_blocking_result_whose_call_is_of_another_scope_fails_the_compile() -> None:
    items = [
        _said("call", "assistant_msg", _CALL, scope={"user": "other"}),
        _said("result", "tool_result", _RESULT, tags=["blocking"]),
    ]

    with pytest.raises(RequiredWithheld, match="result"):
        compiled(items)


def test_a_request_is_not_changed_by_its_compile() -> None:
    made = request([item("a"), item("b", content={"x": [1]})])
    before = made.model_dump_json()

    compile_context(made, ports())

    assert made.model_dump_json() == before
