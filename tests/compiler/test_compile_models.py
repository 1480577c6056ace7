"""The compiler's models: fields, closed lists, round trips, hashes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta, timezone
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from hansard_compiler.compile import models
from hansard_compiler.compile.errors import InvalidInput, UnknownSchemaVersion
from hansard_compiler.compile.models import (
    CompilationDecision,
    CompilationRequest,
    CompiledContext,
    ContextItem,
    MemoryRecord,
    PolicyRule,
    SourceRef,
    item_hash,
    parse,
)
from hansard_compiler.models import runs as records
from hansard_compiler.models.runs import ReplayRecipe, RunRecord, StepRecord
from tests.compiler.compiling import NOW, compiled, item, request_data

_FIELDS: dict[type[BaseModel], str] = {
    ContextItem: "id kind content source_ref created_at freshness_ts ttl_seconds trust_score "
    "importance_score sensitivity scope dependencies token_estimate stable_hash tags metadata",
    SourceRef: "source_type uri title version checksum retrieval_query positions author metadata",
    MemoryRecord: "id memory_type subject content source_run_id source_step_ids confidence "
    "freshness_ts expires_at tags scope metadata",
    PolicyRule: "id name description applies_to effect conditions priority metadata",
    CompilationRequest: "request_id run_id step_id provider model task_summary context_items "
    "tool_specs memory_records policy_rules token_budget response_reserve compile_config",
    CompilationDecision: "item_id decision pass_name reason_code score_breakdown original_tokens "
    "final_tokens notes",
    CompiledContext: "id request_id provider model selected_items excluded_items decisions "
    "token_allocation stable_prefix_hash volatile_suffix_hash rendered_payload",
    RunRecord: "run_id agent_name domain user_goal started_at ended_at status metadata",
    StepRecord: "step_id run_id step_index step_kind started_at ended_at status metadata",
    ReplayRecipe: "replay_id source_run_id source_step_id provider_override model_override "
    "compile_overrides context_mutations notes",
}
_VALID: dict[type[BaseModel], dict[str, Any]] = {
    ContextItem: item("a"),
    SourceRef: {"source_type": "file"},
    MemoryRecord: {
        "id": "m", "memory_type": "fact", "subject": "s", "content": "c", "confidence": 0.5,
    },
    PolicyRule: {"id": "r", "name": "n", "effect": "deny"},
    CompilationRequest: request_data(),
    RunRecord: {
        "run_id": "r", "agent_name": "a", "domain": "research", "user_goal": "g",
        "started_at": NOW, "status": "running",
    },
    StepRecord: {
        "step_id": "s", "run_id": "r", "step_index": 0, "step_kind": "model_call",
        "started_at": NOW, "status": "blocked",
    },
    ReplayRecipe: {"replay_id": "p", "source_run_id": "r", "source_step_id": "s"},
}  # fmt: skip
_TOP_LEVEL = (CompilationRequest, CompiledContext, RunRecord, StepRecord, ReplayRecipe)


@pytest.mark.covers(
    "DM-02", "DM-05", "DM-07", "DM-10", "DM-12", "DM-13", "DM-15", "DM-16", "DM-17", "DM-21"
)
@pytest.mark.parametrize("model", _FIELDS, ids=lambda model: model.__name__)
def test_every_field_asked_for_is_in_the_schema(model: type[BaseModel]) -> None:
    wanted = _FIELDS[model].split()

    found = list(model.model_json_schema()["properties"])

    assert set(wanted) <= set(found)
    if model in (ContextItem, SourceRef, MemoryRecord, PolicyRule):
        assert found == wanted


def _values(model: type[BaseModel], field: str) -> set[str]:
    return set(get_args(model.model_fields[field].annotation))


@pytest.mark.covers("DM-03", "DM-04", "DM-06", "DM-08", "DM-09", "DM-11", "DM-14", "DM-18")
@pytest.mark.parametrize(
    ("model", "field", "values"),
    [
        (
            ContextItem,
            "kind",
            "system policy user_msg assistant_msg task constraint plan memory retrieval_doc "
            "tool_schema tool_result artifact file code_diff summary handoff other",
        ),
        (ContextItem, "sensitivity", "public internal restricted secret"),
        (
            SourceRef,
            "source_type",
            "user app_state memory retrieval tool file mcp_resource policy human_approval "
            "external_api other",
        ),
        (
            MemoryRecord,
            "memory_type",
            "working durable session_summary fact preference constraint artifact_index "
            "correction interest note decision",
        ),
        (PolicyRule, "effect", "allow deny redact require_approval require_receipt"),
        (CompilationDecision, "decision", "include exclude compress redact"),
        (
            StepRecord,
            "step_kind",
            "model_call tool_call memory_write policy_check human_approval other",
        ),
    ],
)
def test_closed_lists_hold_what_was_asked_for_and_nothing_else(
    model: type[BaseModel], field: str, values: str
) -> None:
    assert _values(model, field) == set(values.split())


@pytest.mark.covers("DM-19")
def test_runs_and_steps_know_their_states() -> None:
    assert _values(RunRecord, "status") == {"running", "completed", "failed", "cancelled"}
    assert _values(StepRecord, "status") == _values(RunRecord, "status") | {"blocked"}


@pytest.mark.covers("DM-03")
@pytest.mark.parametrize("kind", get_args(models.ItemKind))
def test_an_item_of_every_kind_compiles(kind: str) -> None:
    result = compiled([item("a", kind)])

    assert [one.decision for one in result.receipts] == ["include"]


@pytest.mark.covers("DM-01")
@pytest.mark.parametrize("model", _VALID, ids=lambda model: model.__name__)
def test_missing_and_unknown_fields_are_refused_with_their_names(model: type[BaseModel]) -> None:
    required = [name for name, field in model.model_fields.items() if field.is_required()]
    valid = _VALID[model]

    assert parse(model, valid)
    for name in required:
        with pytest.raises(InvalidInput) as missing:
            parse(model, {key: value for key, value in valid.items() if key != name})
        assert [problem.where for problem in missing.value.problems] == [name]
    with pytest.raises(InvalidInput) as unknown:
        parse(model, {**valid, "surprise": 1})
    assert [problem.where for problem in unknown.value.problems] == ["surprise"]


@pytest.mark.covers("DM-01")
@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"kind": "poem"}, "kind"),
        ({"sensitivity": "cosmic"}, "sensitivity"),
        ({"trust_score": 1.01}, "trust_score"),
        ({"importance_score": float("nan")}, "importance_score"),
        ({"ttl_seconds": -1}, "ttl_seconds"),
        ({"created_at": "2026-03-04T12:00:00"}, "created_at"),
        ({"created_at": "0001-01-01T00:00:00+14:00"}, "created_at"),
        ({"created_at": "9999-12-31T23:00:00-14:00"}, "created_at"),
        ({"id": ""}, "id"),
        ({"stable_hash": "sha256:0"}, "ContextItem"),
        ({"source_ref": {"source_type": "rumour"}}, "source_ref.source_type"),
    ],
)
def test_values_outside_their_list_or_range_are_refused(change: dict[str, Any], where: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(ContextItem, {**item("a"), **change})

    assert [problem.where for problem in refused.value.problems] == [where]


def _nested(depth: int) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({"set": {1, 2}}, "what JSON cannot say"),
        ({"half": "\ud800"}, "half of a surrogate pair"),
        (_nested(100_000), "nested too deeply"),
    ],
    ids=["set", "surrogate", "deep"],
)
def test_content_that_cannot_be_stored_is_refused(content: Any, what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        parse(ContextItem, item("a", content=content))


def test_a_refusal_does_not_repeat_what_was_given() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(ContextItem, {**item("a"), "kind": "hunter2-secret", "content": ["hunter2-secret"]})

    assert "hunter2" not in str(refused.value)


@pytest.mark.covers("DM-27")
@pytest.mark.parametrize("model", _TOP_LEVEL, ids=lambda model: model.__name__)
def test_top_level_objects_say_their_schema_version(model: type[BaseModel]) -> None:
    assert model.model_fields["schema_version"].default == "1"

    with pytest.raises(UnknownSchemaVersion) as refused:
        parse(model, {"schema_version": "2"})

    assert (refused.value.found, refused.value.supported) == ("2", "1")


# --- round trips ------------------------------------------------------------------------------

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)
_ZONES = [timezone(timedelta(minutes=minutes)) for minutes in (-720, -210, 0, 1, 345, 840)]
_TIMES = st.datetimes(timezones=st.sampled_from(_ZONES))


@pytest.mark.covers("DM-22")
@given(
    content=_TEXT | st.dictionaries(_TEXT, _JSON, max_size=4),
    created_at=_TIMES,
    trust=st.floats(0, 1),
    metadata=st.dictionaries(_TEXT, _JSON, max_size=3),
)
def test_items_survive_json(content: Any, created_at: Any, trust: float, metadata: Any) -> None:
    more = {"created_at": created_at, "trust_score": trust, "metadata": metadata}
    made = parse(ContextItem, item("a", content=content, **more))

    again = ContextItem.model_validate_json(made.model_dump_json())

    assert again == made
    assert again.created_at == created_at


@pytest.mark.covers("DM-22")
@pytest.mark.parametrize("model", _VALID, ids=lambda model: model.__name__)
def test_every_model_survives_json(model: type[BaseModel]) -> None:
    made = parse(model, _VALID[model])

    assert model.model_validate_json(made.model_dump_json()) == made


@pytest.mark.covers("DM-22")
def test_a_compiled_context_survives_json() -> None:
    made = compiled([item("a"), item("ü", "user_msg", "what is ‹a›? 你好")]).context()

    assert CompiledContext.model_validate_json(made.model_dump_json()) == made


# --- hashes -----------------------------------------------------------------------------------


@pytest.mark.covers("DM-23", "TS-01")
@given(st.dictionaries(_TEXT, _JSON, max_size=4))
def test_a_hash_does_not_depend_on_the_order_of_keys(content: dict[str, Any]) -> None:
    backwards = dict(reversed(content.items()))

    assert item_hash("file", content) == item_hash("file", backwards)


@pytest.mark.covers("DM-23", "TS-01")
def test_a_hash_depends_on_kind_and_content_only() -> None:
    one = parse(ContextItem, item("a", content="x", trust_score=0.1, tags=["t"]))
    same = parse(
        ContextItem, item("b", content="x", trust_score=0.9, created_at="2020-01-01T00:00Z")
    )
    kind = parse(ContextItem, item("a", "file", content="x"))
    content = parse(ContextItem, item("a", content="x "))

    assert one.stable_hash == same.stable_hash
    assert len({one.stable_hash, kind.stable_hash, content.stable_hash}) == 3


_HASH = """
from hansard_compiler.compile.models import item_hash
print(item_hash("file", {"b": [1, 2.5, None], "a": {"ü": "x", "é": True}, "set": "order"}))
"""


@pytest.mark.slow
@pytest.mark.covers("DM-23", "TS-01")
def test_a_hash_is_the_same_in_every_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", _HASH],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4711")
    }

    expected = item_hash("file", {"set": "order", "a": {"é": True, "ü": "x"}, "b": [1, 2.5, None]})
    assert found == {expected + "\n"}


@pytest.mark.covers("DM-25")
def test_no_name_of_a_provider_or_of_code_is_in_the_core_models() -> None:
    names = {
        word
        for module in (models, records)
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, models.Model)
        for word in json.dumps(model.model_json_schema()).lower().replace("_", " ").split()
    }

    for name in ("openai", "anthropic", "claude", "gpt", "repo", "git", "python", "pytest"):
        assert not any(name in word for word in names), name
