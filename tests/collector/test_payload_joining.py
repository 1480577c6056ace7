"""A span and the payload it names: what the span says is known, whichever came first."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf.message import Message

from hansard_collector.derivation.rebuild import rebuild
from hansard_collector.derivation.stored_span import StepReading, read_step
from hansard_collector.dialects.engine.references import READ_BYTES, WRITTEN_BYTES
from hansard_collector.payloads import store_payload
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.pipeline.requests import Encoding, IngestRequest, Signal
from hansard_compiler.calls import Call, Tool
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.content.payloads import prepare_payload
from hansard_store.content.retention import Retention
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.maintenance.deletion import delete_run
from hansard_store.maintenance.garbage import collect_garbage
from hansard_store.search.full_text import search_texts
from tests.collector.ingesting import SENDER, TRACE, Ingesting, log, logs, span, traces
from tests.collector.payload_maker import (
    SECRET,
    answered,
    asked,
    chat,
    digest_of,
    record,
    ref_of,
)
from tests.collector.test_rebuild import derived

QUESTION = asked("What is the weather in Bern tomorrow?")
ANSWER = answered("Sunny, says the marmot.")
REFS = {"gen_ai.input.messages": QUESTION, "gen_ai.output.messages": ANSWER}

Upload = Callable[[Ingesting, bytes], None]


def by_log_record(ingesting: Ingesting, data: bytes) -> None:
    assert ingesting.send(logs([record(data)])).rejected == 0


def by_upload(
    ingesting: Ingesting, data: bytes, *, mode: RetentionMode = RetentionMode.FULL_PAYLOADS
) -> None:
    """As the HTTP door does it, beside the pipeline."""
    made = prepare_payload(
        data,
        expected=digest_of(data),
        media_type="application/json",
        received_ns=1,
        retain=Retention.of(ingesting.folder, mode).payload,
    )
    assert made is not None
    store_payload(ingesting.folder, made)


BOTH_WAYS = pytest.mark.parametrize("upload", [by_log_record, by_upload])


def step(ingesting: Ingesting, number: int = 1) -> StepReading:
    found = ingesting.one("SELECT id FROM span WHERE span_id = ?", number.to_bytes(8, "big"))
    return read_step(ingesting.db, found)


def call_of(ingesting: Ingesting) -> Call:
    call = step(ingesting).normal.call
    assert call is not None
    return call


def tool_of(ingesting: Ingesting) -> Tool:
    tool = step(ingesting).normal.tool
    assert tool is not None
    return tool


def said(call: Call) -> list[str]:
    return [message.text for message in (*call.input, *call.output)]


WORDS = ["What is the weather in Bern tomorrow?", "Sunny, says the marmot."]


def assert_known(ingesting: Ingesting) -> None:
    """The conversation is there for pages, lists and search."""
    assert said(call_of(ingesting)) == WORDS
    row = "SELECT input_prefix IS NOT NULL, output_prefix IS NOT NULL FROM call"
    assert ingesting.one(row) == (1, 1)
    run = ingesting.one("SELECT first_input, last_output, model_calls, tokens_input FROM run")
    assert run == (*WORDS, 1, 12)
    assert len(search_texts(ingesting.db, "marmot", now_ns=0).items) == 1


@BOTH_WAYS
def test_payloads_that_come_first_are_read_with_their_span(
    ingesting: Ingesting, upload: Upload
) -> None:
    for data in (QUESTION, ANSWER):
        upload(ingesting, data)
    ingesting.send(traces([chat(REFS)]))

    assert_known(ingesting)


@BOTH_WAYS
def test_a_span_that_comes_first_is_read_again_with_its_payloads(
    ingesting: Ingesting, upload: Upload
) -> None:
    ingesting.send(traces([chat(REFS)]))
    assert said(call_of(ingesting)) == []
    upload(ingesting, QUESTION)
    assert said(call_of(ingesting)) == WORDS[:1]
    upload(ingesting, ANSWER)

    assert_known(ingesting)


def test_payloads_of_one_transaction_with_their_span_are_read(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    pipeline = Pipeline(folder, RetentionPolicy("full_payloads", Redactor(b"key")))
    wanted: tuple[Message, ...] = (
        traces([chat(REFS)]),
        logs([record(QUESTION), record(ANSWER)]),
        traces([chat(REFS, 2)]),
    )
    signals = Signal.TRACES, Signal.LOGS, Signal.TRACES
    waiting = [
        pipeline.submit(
            IngestRequest(signal, Encoding.PROTOBUF, one.SerializeToString(), SENDER, 1)
        )
        for signal, one in zip(signals, wanted, strict=True)
    ]
    pipeline.start()  # finds all three in its queue
    for future in waiting:
        future.result(60)
    pipeline.close()

    with contextlib.closing(open_reader(folder)) as db:
        told = "SELECT count(*) FROM call WHERE input_prefix NOT NULL AND output_prefix NOT NULL"
        assert db.execute(told).get == 2
        assert db.execute("SELECT first_input, last_output FROM run").get == (*WORDS,)


def test_what_was_sent_stays_as_it_was_sent(ingesting: Ingesting) -> None:
    by_log_record(ingesting, QUESTION)
    ingesting.send(traces([chat(REFS)]))

    attributes = step(ingesting).view.attributes
    assert attributes["gen_ai.input.messages_ref"] == ref_of(QUESTION)
    assert "gen_ai.input.messages" not in attributes


def test_content_in_the_span_itself_needs_no_payload(ingesting: Ingesting) -> None:
    by_log_record(ingesting, QUESTION)
    inline = {"gen_ai.input.messages": asked("Inline?").decode()}
    ingesting.send(traces([chat({"gen_ai.input.messages": QUESTION}, attributes=inline)]))

    assert said(call_of(ingesting)) == ["Inline?"]


@BOTH_WAYS
def test_arguments_and_results_of_tools_are_read(ingesting: Ingesting, upload: Upload) -> None:
    arguments, result = json.dumps({"city": "Bern"}).encode(), b"22 degrees"
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "weather",
        "gen_ai.tool.call.arguments_ref": ref_of(arguments),
        "gen_ai.tool.call.result_ref": ref_of(result),
    }
    ingesting.send(traces([span(1, name="execute_tool weather", attributes=tool)]))
    upload(ingesting, arguments)
    upload(ingesting, result)

    assert tool_of(ingesting).arguments == {"city": "Bern"}
    assert tool_of(ingesting).result == "22 degrees"
    assert len(search_texts(ingesting.db, "degrees", now_ns=0).items) == 1


def test_input_and_output_of_our_own_steps_are_read(ingesting: Ingesting) -> None:
    given, returned = json.dumps({"ticket": 7}).encode(), json.dumps(["done"]).encode()
    refs = {"hansard.input_ref": ref_of(given), "hansard.output_ref": ref_of(returned)}
    agent = {"gen_ai.operation.name": "invoke_agent", **refs}
    by_log_record(ingesting, given)
    ingesting.send(traces([span(1, name="invoke_agent clerk", attributes=agent)]))
    by_log_record(ingesting, returned)

    normal = step(ingesting).normal
    assert (normal.input, normal.output) == (given.decode(), returned.decode())


def test_a_span_with_log_records_is_read_with_its_payloads(ingesting: Ingesting) -> None:
    for data in (QUESTION, ANSWER):
        by_log_record(ingesting, data)
    ingesting.send(traces([chat(REFS)]))
    ingesting.send(logs([log(1)]))

    assert_known(ingesting)


def test_the_digest_of_a_redacted_payload_leads_to_what_was_kept(ingesting: Ingesting) -> None:
    data = asked(f"My key is {SECRET}, is it safe?")
    ingesting.send(traces([chat({"gen_ai.input.messages": data})]))
    by_upload(ingesting, data, mode=RetentionMode.REDACTED_PAYLOADS)

    (text,) = said(call_of(ingesting))
    assert text.startswith("My key is ‹redacted:anthropic:")


@pytest.mark.parametrize(
    "data",
    [b"\xff\xfe\0", b"", b"[" * 5000, b"{", b"null"],
    ids=["binary", "empty", "deep", "{", "null"],
)
def test_a_payload_that_cannot_be_read_as_messages_hides_nothing(
    ingesting: Ingesting, data: bytes
) -> None:
    by_log_record(ingesting, data)
    ingesting.send(traces([chat({"gen_ai.input.messages": data})]))

    assert call_of(ingesting).request_model == "gpt-4o-mini"
    assert ingesting.one("SELECT tokens_input FROM run") == 12


@pytest.mark.covers("OT-07")
def test_a_large_prompt_is_read_on_demand_and_no_row_grows_by_it(ingesting: Ingesting) -> None:
    data = asked("word " * (WRITTEN_BYTES // 5 + 1_000))
    assert WRITTEN_BYTES < len(data) < READ_BYTES
    ingesting.send(traces([chat({"gen_ai.input.messages": data})]))
    by_upload(ingesting, data)

    assert len(said(call_of(ingesting))[0]) > WRITTEN_BYTES
    assert ingesting.one("SELECT max(length(record)) FROM span_record") < 2_000
    assert ingesting.one("SELECT max(length(body)) FROM content") is None
    assert ingesting.one("SELECT input_prefix FROM call") is None


def test_a_payload_that_nobody_sent_is_missing_and_the_rest_is_shown(ingesting: Ingesting) -> None:
    ingesting.send(traces([chat(REFS)]))

    assert said(call_of(ingesting)) == []
    assert ingesting.one("SELECT count(*) FROM payload_use") == 2


@BOTH_WAYS
@pytest.mark.parametrize("span_first", [True, False])
def test_rebuilding_reads_the_payloads_again(
    ingesting: Ingesting, upload: Upload, span_first: bool
) -> None:
    if span_first:
        ingesting.send(traces([chat(REFS)]))
    for data in (QUESTION, ANSWER):
        upload(ingesting, data)
    if not span_first:
        ingesting.send(traces([chat(REFS)]))
    before = derived(ingesting)
    rebuild(ingesting.folder)

    assert derived(ingesting) == before


@BOTH_WAYS
@pytest.mark.parametrize("span_first", [True, False])
def test_a_deleted_run_takes_its_payloads_along_and_no_other_ones(
    ingesting: Ingesting, upload: Upload, span_first: bool
) -> None:
    shared = asked("Asked in two runs")
    other = chat({"gen_ai.input.messages": shared}, 2)
    other.trace_id = bytes(reversed(TRACE))
    requests = [traces([chat({**REFS, "gen_ai.system_instructions": shared})]), traces([other])]
    if span_first:
        for request in requests:
            ingesting.send(request)
    for data in (QUESTION, ANSWER, shared):
        upload(ingesting, data)
    if not span_first:
        for request in requests:
            ingesting.send(request)

    connection = open_for_maintenance(ingesting.folder)
    delete_run(connection, TRACE, reason="by hand")
    collect_garbage(ingesting.folder, connection)
    left = connection.execute("SELECT digest FROM payload").fetchall()
    connection.close()
    assert left == [(digest_of(shared),)]
