"""Compiles and receipts over the API: one whole, and all of them by what they did."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest

from hansard_compiler.compile.engine import CompileResult
from tests.collector.compile_maker import Sent, Told, compiled_files, spans_of
from tests.collector.ingesting import logs
from tests.collector.payload_maker import record, ref_of
from tests.compiler.compiling import compiled, item
from tests.web.api.conftest import Api
from tests.web.api.otlp import chat, run_id, step_id, traces

NANO = 1_000_000_000


def tell(api: Api, told: Told, *, payloads: Sequence[bytes] | None = None) -> Sent:
    sent = spans_of(told.attributes())
    kept = told.payloads() if payloads is None else payloads
    if kept:  # refused, one by one, where no content is kept
        body = logs([record(data) for data in kept]).SerializeToString()
        headers = {"content-type": "application/x-protobuf"}
        assert api.http.post("/v1/logs", content=body, headers=headers).status_code == 200
    api.send(sent.request)
    return sent


@pytest.mark.covers("SC-12", "RC-05", "RC-06", "CP-02")
def test_a_compile_is_shown_whole(api: Api) -> None:
    told = Told(compiled_files(response_reserve=100))
    sent = tell(api, told)

    body = api.get(f"/v1/compilations/{told.result.id}")

    whole = told.result.context()
    allocation = whole.token_allocation
    assert body["hash"] == whole.compile_hash
    assert (body["run_id"], body["step_id"]) == (sent.run_id, sent.step_id)
    assert (body["parent_step_id"], body["calls"]) == (sent.parent_id, [sent.call_id])
    assert body["budget"] == {
        "tokens": 800, "reserve": 100, "available": 700, "used": allocation["used"],
        "free": allocation["free"],
    }  # fmt: skip
    assert body["token_allocation"] == allocation
    assert body["sections"] == whole.layout
    assert body["passes"] == whole.passes
    assert [one["name"] for one in body["passes"]][-1] == whole.passes[-1]["name"]
    assert body["items"]["total"] == len(whole.decisions)
    assert (body["request"]["state"], body["result"]["state"]) == ("stored", "stored")
    assert api.http.get(body["request"]["url"]).content == told.request_bytes
    rendered = api.http.get(body["result"]["url"]).json()["rendered_payload"]
    assert rendered == whole.rendered_payload
    assert [one["item_id"] for one in body["receipts"]] == [one.item_id for one in whole.decisions]
    assert body["stable_prefix_hash"] == whole.stable_prefix_hash
    assert body["volatile_suffix_hash"] == whole.volatile_suffix_hash
    assert body["notes"] == []


@pytest.mark.covers("RC-06")
def test_a_receipt_tells_terms_that_add_up_and_what_was_missed(api: Api) -> None:
    told = Told(compiled_files())
    tell(api, told)

    receipts = api.get(f"/v1/compilations/{told.result.id}")["receipts"]

    for shown, made in zip(receipts, told.result.context().decisions, strict=True):
        assert shown["score_breakdown"] == made.score_breakdown
        terms = [one["points"] for name, one in made.score_breakdown.items() if name != "score"]
        assert Decimal(shown["score"]) * NANO == sum(terms)
        assert shown["missed_by_tokens"] == made.missed_by_tokens
        assert (shown["decision"], shown["pass"], shown["reason"]) == (
            made.decision, made.pass_name, made.reason_code,
        )  # fmt: skip
        assert (shown["original_ref"], shown["final_ref"]) == (made.original_ref, made.final_ref)
    out = [one for one in receipts if one["decision"] == "exclude"]
    assert out
    assert all(one["missed_by_tokens"] > 0 for one in out)
    assert out[0]["reason_text"] == "did not fit into what its class and those before it left"


@pytest.mark.covers("RC-25")
def test_the_bytes_of_an_excluded_item_are_there(api: Api) -> None:
    told = Told(compiled_files())
    tell(api, told)
    [page] = [api.get("/v1/receipts", decision="exclude", limit=1)]

    found = page["items"][0]
    answer = api.http.get(f"/v1/payloads/{found['original_ref']}")
    content = {one.id: one.content for one in told.result.request.context_items}
    assert answer.content.decode() == content[found["item_id"]]


def test_without_the_result_the_span_tells_what_it_can(api: Api) -> None:
    told = Told(compiled_files())
    tell(api, told, payloads=[])

    body = api.get(f"/v1/compilations/{told.result.id}")

    assert (body["request"]["state"], body["result"]["state"]) == ("missing", "missing")
    assert body["token_allocation"] is None
    assert body["passes"] is None
    layout = {one["name"]: one for one in told.result.context().layout if one["item_ids"]}
    shown = {one["name"]: one for one in body["sections"]}
    assert shown.keys() == layout.keys()
    for name, one in shown.items():
        assert one["tokens"] == layout[name]["tokens"]
        assert sorted(one["item_ids"]) == sorted(layout[name]["item_ids"])
    assert body["receipts"][0]["score_breakdown"] is None
    assert body["receipts"][0]["score"] is not None


@pytest.mark.parametrize(
    "data", [b"no JSON", b'{"decisions": [], "layout": [7, {"name": 5}], "passes": 9}']
)
def test_a_result_that_is_none_fails_nothing(api: Api, data: bytes) -> None:
    told = Told(compiled_files(), {"hansard.compilation.result_ref": ref_of(data)})
    tell(api, told, payloads=[data])

    body = api.get(f"/v1/compilations/{told.result.id}")

    assert len(body["receipts"]) == 13
    assert body["passes"] is None


def test_ids_may_be_short_and_unknown_ones_are_named(api: Api) -> None:
    told = Told(compiled_files())
    tell(api, told)

    short = api.get(f"/v1/compilations/{told.result.id[:8]}")
    assert short["compilation_id"] == told.result.id
    assert api.refused(404, "/v1/compilations/nothing-of-it")["code"] == "not_found"


def test_the_same_compile_made_twice_names_both_steps(api: Api) -> None:
    told = Told(compiled_files())
    first, second = tell(api, told), tell(api, told)

    body = api.get(f"/v1/compilations/{told.result.id}")

    assert body["step_id"] == second.step_id
    assert body["same_compile"] == [first.step_id]


@pytest.mark.covers("SC-18")
def test_a_later_version_is_read_and_named(api: Api) -> None:
    told = Told(compiled_files(), {"hansard.schema_version": "9",
                                   "hansard.item.reasons": ["too_cold"] * 13})  # fmt: skip
    tell(api, told)

    body = api.get(f"/v1/compilations/{told.result.id}")

    assert body["recorded_schema_version"] == "9"
    assert "version '9'" in body["notes"][0]
    assert (body["receipts"][0]["reason"], body["receipts"][0]["reason_text"]) == (
        "too_cold", None,
    )  # fmt: skip


def test_what_retention_does_not_keep_is_said(sparing_api: Api) -> None:
    told = Told(compiled_files())
    tell(sparing_api, told)

    body = sparing_api.get(f"/v1/compilations/{told.result.id}")

    assert [one["item_id"] for one in body["receipts"]] == [
        one.item_id for one in told.result.receipts
    ]
    withheld = body["result"]["state"] == "withheld"
    assert withheld == (body["receipts"][0]["original_ref"] is None)
    assert withheld == (body["receipts"][0]["source"] == "withheld")
    assert withheld == (body["token_allocation"] is None)


# ---- of a step


@pytest.mark.parametrize("which", ["step_id", "parent_id", "call_id"])
def test_a_step_shows_the_compile_it_is_about(api: Api, which: str) -> None:
    told = Told(compiled_files())
    sent = tell(api, told)

    step = api.get(f"/v1/steps/{getattr(sent, which)}")

    assert step["context"]["kind"] == "native"
    assert step["context"]["compilation_id"] == told.result.id
    assert step["context"]["items"]["excluded"] > 0
    assert [one["item_id"] for one in step["receipts"]] == [
        one.item_id for one in told.result.receipts
    ]
    assert api.get(f"/v1/runs/{sent.run_id}")["has_receipts"] is True


def test_a_call_without_a_compile_is_derived_and_has_no_receipts(api: Api) -> None:
    api.send(traces(chat("a", words="hello")))

    step = api.get(f"/v1/steps/{step_id('a')}")

    assert step["context"]["kind"] == "derived"
    assert step["receipts"] == []
    assert api.get(f"/v1/runs/{run_id()}")["has_receipts"] is False


# ---- across runs


def other(words: str) -> CompileResult:
    return compiled(
        [
            item("notes", "memory", words, source_ref={"source_type": "memory", "uri": "mem-1"}),
            item("file-9", "file", words, source_ref={"source_type": "file",
                                                      "uri": "src/money_9.py"}),
            item("copy", "file", words, trust_score=0.1),
            item("ask", "user_msg", "?", source_ref={"source_type": "user"}),
        ],
        budget=2_000,
    )  # fmt: skip


@pytest.mark.covers("RC-27")
def test_every_run_in_which_a_file_was_excluded_by_budget(api: Api) -> None:
    out = [tell(api, Told(compiled_files(12 + at))) for at in range(3)]
    tell(api, Told(other("short")))  # there it went in

    found = api.items("/v1/receipts", source="src/money_9.py", reason="over_budget", limit=2)

    assert [one["run_id"] for one in found] == [sent.run_id for sent in reversed(out)]
    assert {one["item_id"] for one in found} == {"file-9"}
    assert all(one["missed_by_tokens"] > 0 for one in found)


@pytest.mark.covers("SC-22")
@pytest.mark.parametrize(
    ("query", "items"),
    [
        ({"item": "notes"}, ["notes"]),
        ({"kind": "memory"}, ["notes"]),
        ({"source": "memory"}, ["notes"]),
        ({"pass": "dedupe"}, ["copy"]),
        ({"reason": "duplicate", "decision": "exclude"}, ["copy"]),
        ({"rule": "none"}, []),
        ({"until": "2001-01-01"}, []),
        ({"since": "2001-01-01", "item": "ask"}, ["ask"]),
        ({"item": ""}, ["notes", "file-9", "copy", "ask"]),
    ],
)
def test_receipts_are_narrowed(api: Api, query: dict[str, str], items: list[str]) -> None:
    sent = tell(api, Told(other("the very same")))

    for more in ({}, {"run": sent.run_id}):
        found = api.items("/v1/receipts", **query, **more)
        assert [one["item_id"] for one in found] == items


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"limit": "0"}, 400, "invalid_query"),
        ({"limit": "501"}, 400, "invalid_query"),
        ({"cursor": "x"}, 400, "invalid_cursor"),
        ({"since": "yesterday"}, 400, "invalid_query"),
        ({"run": "f" * 32}, 404, "not_found"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    api: Api, query: dict[str, str], status: int, code: str
) -> None:
    assert api.refused(status, "/v1/receipts", **query)["code"] == code
