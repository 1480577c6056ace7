"""The payloads of a step, as a program sees them; and uploads that come after their span."""

from __future__ import annotations

import re

import pytest

from hansard_store.content.payloads import INLINE_BYTES, blob_path
from tests.collector.ingesting import logs, span, traces
from tests.collector.payload_maker import (
    SECRET,
    answered,
    asked,
    chat,
    digest_of,
    record,
    ref_of,
)
from tests.web.api.conftest import Api, Json

STEP = f"{bytes(range(16)).hex()}-{1:016x}"
QUESTION, ANSWER = asked("What is the weather?"), answered("Sunny, says the marmot.")
REFS = {"gen_ai.input.messages": QUESTION, "gen_ai.output.messages": ANSWER}


def put(api: Api, data: bytes, media_type: str = "application/json") -> None:
    path = f"/v1/payloads/{ref_of(data)}"
    answer = api.http.put(path, content=data, headers={"content-type": media_type})
    assert answer.is_success, answer.text


def payloads(api: Api) -> list[Json]:
    found: list[Json] = api.get(f"/v1/steps/{STEP}")["payloads"]
    return found


def texts(api: Api) -> list[str]:
    call = api.get(f"/v1/steps/{STEP}")["call"]
    return [message["parts"][0]["text"] for message in (*call["input"], *call["output"])]


def test_a_step_lists_what_it_names_and_what_is_there(api: Api) -> None:
    put(api, QUESTION)
    api.send(traces([chat(REFS, attributes={"gen_ai.output.messages_size": 77})]))

    stored, missing = payloads(api)
    assert stored == {
        "name": "gen_ai.input.messages",
        "attribute": "gen_ai.input.messages_ref",
        "ref": ref_of(QUESTION),
        "state": "stored",
        "media_type": "application/json",
        "size": len(QUESTION),
        "stored_ref": ref_of(QUESTION),
        "url": f"/v1/payloads/{ref_of(QUESTION)}",
    }
    assert missing == {
        "name": "gen_ai.output.messages",
        "attribute": "gen_ai.output.messages_ref",
        "ref": ref_of(ANSWER),
        "state": "missing",
        "media_type": None,
        "size": 77,
        "stored_ref": None,
        "url": None,
    }
    assert api.http.get(stored["url"]).content == QUESTION


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (0, 2, 1)])
def test_the_conversation_is_there_when_its_payloads_are(api: Api, order: tuple[int, ...]) -> None:
    steps = (
        lambda: put(api, QUESTION),
        lambda: put(api, ANSWER),
        lambda: api.send(traces([chat(REFS)])),
    )
    for at in order:
        steps[at]()

    assert texts(api) == ["What is the weather?", "Sunny, says the marmot."]
    [hit] = api.items("/v1/search", q="marmot")
    assert hit["step_id"] == STEP
    [run] = api.items("/v1/runs")
    assert (run["first_input"], run["last_output"]) == tuple(texts(api))


def test_a_late_upload_is_news_of_its_run(api: Api) -> None:
    api.send(traces([chat(REFS)]))
    before = api.get(f"/v1/runs/{STEP[:32]}")
    put(api, QUESTION)

    assert api.get(f"/v1/runs/{STEP[:32]}")["first_input"] == "What is the weather?"
    assert before["first_input"] is None


def test_wire_bytes_lists_and_media_are_listed_too(api: Api) -> None:
    wire, image = b'{"model": "m"}', b"\x89PNG\0"
    put(api, wire)
    put(api, image, "image/png")
    attributes = {
        "hansard.request.ref": ref_of(wire),
        "hansard.response.ref": ref_of(b"never sent"),
        "system_prompt_hash": ref_of(b"no payload of ours"),
        "service.build": ref_of(wire),
    }
    sent = span(1, attributes=attributes | {"gen_ai.operation.name": "chat"})
    refs = sent.attributes.add(key="hansard.item.payload_refs").value.array_value.values
    refs.add(string_value=ref_of(image))
    refs.add(string_value=ref_of(b"unknown"))
    api.send(traces([sent]))

    told = [(one["name"], one["state"], one["size"]) for one in payloads(api)]
    assert told == [
        ("hansard.request", "stored", len(wire)),
        ("hansard.response", "missing", None),
        ("service.build", "stored", len(wire)),
        ("hansard.item.payload[0]", "stored", len(image)),
        ("hansard.item.payload[1]", "missing", None),
    ]


def test_what_was_not_kept_whole_says_so(sparing_api: Api) -> None:
    api = sparing_api
    data = asked(f"my key is {SECRET}")
    api.send(traces([chat({"gen_ai.input.messages": data})]))
    put(api, data)

    [one] = payloads(api)
    if one["state"] == "withheld":  # metadata_only
        assert (one["url"], one["size"]) == (None, None)
        assert re.fullmatch("hmac-sha256:[0-9a-f]{64}", one["ref"])
        assert api.refused(404, f"/v1/payloads/{ref_of(data)}")["code"] == "not_found"
        return
    assert (one["state"], one["ref"]) == ("redacted", ref_of(data))
    assert one["stored_ref"] != one["ref"]
    answer = api.http.get(one["url"])
    assert answer.headers["hansard-redacted"] == "true"
    assert ref_of(answer.content) == one["stored_ref"]
    assert re.match("my key is ‹redacted:anthropic:[0-9a-f]{12}›", texts(api)[0])


def test_a_payload_whose_file_is_gone_is_missing(api: Api) -> None:
    data = asked("word " * INLINE_BYTES)
    put(api, data)
    api.send(traces([chat({"gen_ai.input.messages": data})]))
    blob_path(api.folder, digest_of(data)).unlink()

    assert [one["state"] for one in payloads(api)] == ["missing"]
    assert api.get(f"/v1/steps/{STEP}")["call"]["request_model"] == "gpt-4o-mini"


def test_more_than_a_step_can_list_is_cut(api: Api) -> None:
    sent = span(1)
    refs = sent.attributes.add(key="hansard.item.payload_refs").value.array_value.values
    for at in range(1_000):
        refs.add(string_value=ref_of(b"%d" % at))
    api.send(traces([sent]))

    assert len(payloads(api)) == 200


@pytest.mark.parametrize("value", ["sha256:" + "G" * 64, "sha256:" + "0" * 63 + "\0", "x" * 71])
def test_values_that_are_no_references_are_not_listed(api: Api, value: str) -> None:
    api.send(traces([span(1, attributes={"hansard.input_ref": value})]))

    assert payloads(api) == []


def test_a_payload_that_came_as_a_log_record_is_handed_out(api: Api) -> None:
    api.send(logs([record(QUESTION, media_type="application/json")]))

    answer = api.http.get(f"/v1/payloads/{ref_of(QUESTION)}")
    assert (answer.content, answer.headers["content-type"]) == (QUESTION, "application/json")
    assert api.get("/v1/ledger")["logs"]["stored"] == 1


def test_a_record_with_a_wrong_digest_is_told_to_its_sender(api: Api) -> None:
    request = logs([record(QUESTION, ref=ref_of(b"other"))])
    answer = api.http.post(
        "/v1/logs",
        content=request.SerializeToString(),
        headers={"content-type": "application/x-protobuf"},
    )

    assert answer.status_code == 200
    assert b"a payload whose bytes are not those of its digest" in answer.content
    assert api.refused(404, f"/v1/payloads/{ref_of(b'other')}")["code"] == "not_found"
