from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.pipeline.requests import Signal
from hansard_compiler.redaction.metadata_keys import KeyKind, kind_of
from hansard_compiler.redaction.metadata_only import is_code_name
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.ingest.redactions import RemovedSecret

METADATA = RetentionPolicy(
    RetentionMode.METADATA_ONLY, Redactor(b"a key of this test only, 32 bytes")
)


def withheld(text: str) -> str:
    return f"‹withheld:{len(text.encode())}›"


def stored(span: Span) -> Span:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.append(span)
    METADATA.apply(Signal.TRACES, request)
    return request.resource_spans[0].scope_spans[0].spans[0]


def stored_value(key: str, value: AnyValue | str) -> AnyValue:
    span = Span()
    pair = span.attributes.add(key=key)
    if isinstance(value, str):
        pair.value.string_value = value
    else:
        pair.value.CopyFrom(value)
    return stored(span).attributes[0].value


def test_values_of_allowed_names_stay() -> None:
    kept = {
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.tool.call.id": "call_e8d509b2ce77e1efc5e3da2c",
        "llm.input_messages.12.message.role": "user",
        "service.name": "weather app",
        "langfuse.observation.usage_details": '{"input": 5, "output": 2}',
        "duration_ms": "417",
        "error.type": "RateLimitError",
    }

    assert {key: stored_value(key, value).string_value for key, value in kept.items()} == kept


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("gen_ai.input.messages", '[{"role":"user"}]'),
        ("gen_ai.prompt.0.content", "hi"),
        ("gen_ai.prompt", "hi"),
        ("gen_ai.tool.call.arguments", '{"city": "Paris"}'),
        ("gen_ai.tool.description", "Current weather of a city."),
        ("exception.message", "no such file: /home/ada/plan.txt"),
        ("exception.stacktrace", "Traceback…"),
        ("process.command_args", "--prompt"),
        ("url.full", "https://h/?q=hello"),
        ("user.email", "ada@example.org"),
        ("city", "Paris"),
        ("langfuse.observation.usage_details", '{"note": "hello"}'),
        ("langfuse.observation.usage_details", '{"my dear friend": 1}'),
        ("gen_ai.usage.details", "not a number"),
        ("gen_ai.request.model", "x" * 257),
        ("gen_ai.agent.name", "two\nlines"),
        ("gen_ai.agent.name", "what do you think about the plan that we made on Monday"),
    ],
)
def test_other_texts_become_their_length(key: str, text: str) -> None:
    assert stored_value(key, text).string_value == withheld(text)


def test_numbers_and_booleans_stay_under_any_name() -> None:
    assert stored_value("anything", AnyValue(int_value=7)).int_value == 7
    assert stored_value("anything", AnyValue(double_value=0.5)).double_value == 0.5
    assert stored_value("anything", AnyValue(bool_value=True)).bool_value is True


def test_arrays_are_judged_element_by_element_under_an_allowed_name() -> None:
    value = AnyValue()
    value.array_value.values.add(string_value="stop")
    value.array_value.values.add(string_value="a\nb")
    value.array_value.values.add(int_value=3)

    kept = stored_value("gen_ai.response.finish_reasons", value).array_value.values

    assert [v.string_value or v.int_value for v in kept] == ["stop", "‹withheld:3›", 3]


@pytest.mark.parametrize(
    "key", ["gen_ai.input.messages", "embedding.embeddings.0.embedding.vector"]
)
def test_structured_content_goes_whole_numbers_included(key: str) -> None:
    value = AnyValue()
    value.array_value.values.add(double_value=0.25)
    value.array_value.values.add().kvlist_value.values.add(key="amount").value.int_value = 1234

    assert stored_value(key, value).string_value == f"‹withheld:{value.ByteSize()}›"


def test_bytes_become_their_length() -> None:
    assert (
        stored_value("service.name", AnyValue(bytes_value=b"12345")).string_value == "‹withheld:5›"
    )


def test_digests_of_content_become_hmacs_equal_for_equal_content() -> None:
    digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

    first = stored_value("hansard.request.ref", digest).string_value
    again = stored_value("session.id", digest).string_value
    other = stored_value("system_prompt_hash", "0badc0de").string_value

    assert first.startswith("hmac-sha256:")
    assert first == again != other
    assert other.startswith("hmac-sha256:")
    assert digest[7:] not in first
    assert stored_value("hansard.request.ref", first).string_value == first


def test_a_secret_in_an_allowed_value_is_cut_out_of_it() -> None:
    kept = stored_value("service.name", "svc sk-proj-aB3dE6gH9jK2mN5pQ8rS").string_value

    assert kept.startswith("svc ‹redacted:openai:")


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("get_weather", {}),
        ("openai.chat", {}),
        ("ChatOpenAI", {}),
        ("ai.generateText.doGenerate", {}),
        ("weather-agent.workflow", {}),
        ("", {}),
        ("GET", {}),
        ("chat gpt-4o-mini", {"gen_ai.request.model": "gpt-4o-mini"}),
        ("execute_tool a1b2c3", {"gen_ai.tool.name": "a1b2c3"}),
        ("POST /v1/messages", {"http.route": "/v1/messages"}),
        ("Weather Bot 3000", {"gen_ai.agent.name": "Weather Bot 3000"}),
        ("First Token Stream Event", {}),
    ],
)
def test_span_names_that_code_gives_stay(name: str, attributes: dict[str, str]) -> None:
    span = Span(name=name)
    for key, value in attributes.items():
        span.attributes.add(key=key).value.string_value = value

    assert stored(span).name == name


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("what is the weather in Paris?", {}),
        ("lookup weather", {}),
        ("chat gpt-4o-mini", {}),
        ("execute_tool Paris", {"gen_ai.tool.call.arguments": "Paris"}),
        ("GET /users/ada", {"url.path": "/users/ada"}),
        ("order-8f14e45fceea167a", {}),
        ("4bf92f3577b34da6a3ce929d0e0e4736", {}),
        ("Zürich", {}),
    ],
)
def test_other_span_names_become_their_length(name: str, attributes: dict[str, str]) -> None:
    span = Span(name=name)
    for key, value in attributes.items():
        span.attributes.add(key=key).value.string_value = value

    assert stored(span).name == withheld(name)


def test_status_messages_and_trace_state_are_withheld() -> None:
    span = Span(trace_state="vendor=value")
    span.status.message = "no"
    span.status.code = 2  # type: ignore[assignment]  # the stubs want the enum's own type

    kept = stored(span)

    assert kept.trace_state == "‹withheld:12›"
    assert (kept.status.message, kept.status.code) == ("‹withheld:2›", 2)


def test_ids_stay_and_what_has_not_their_length_goes() -> None:
    span = Span(trace_id=b"t" * 16, span_id=b"s" * 8, parent_span_id=b"my dear diary")

    kept = stored(span)

    assert (kept.trace_id, kept.span_id, kept.parent_span_id) == (b"t" * 16, b"s" * 8, b"")


def test_names_of_attributes_that_read_like_content_are_withheld() -> None:
    span = Span()
    for key in ("http.request.header.x-b3-traceid", "answer for ada", "u8f14e45fceea167a"):
        span.attributes.add(key=key).value.int_value = 1

    kept = [pair.key for pair in stored(span).attributes]

    assert kept == ["http.request.header.x-b3-traceid", "‹withheld:14›", "‹withheld:17›"]


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("claude_code.api_request", "claude_code.api_request"),
        ("dear.diary", "‹withheld:10›"),
        ("what is the weather?", "‹withheld:20›"),
    ],
)
def test_log_bodies_are_withheld_but_for_event_names(body: str, kept: str) -> None:
    request = ExportLogsServiceRequest()
    log = request.resource_logs.add().scope_logs.add().log_records.add()
    log.body.string_value = body
    log.severity_text = "INFO"
    log.event_name = "gen_ai.client.inference.operation.details"

    METADATA.apply(Signal.LOGS, request)

    stored_log = request.resource_logs[0].scope_logs[0].log_records[0]
    assert stored_log.body.string_value == kept
    assert stored_log.severity_text == "INFO"
    assert stored_log.event_name == "gen_ai.client.inference.operation.details"


def test_what_was_withheld_is_counted_once_an_item() -> None:
    request: Any = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add(name="what is it?")
    span.attributes.add(key="note").value.string_value = "this"

    assert METADATA.apply(Signal.TRACES, request) == {0: (RemovedSecret("withheld", "", 2),)}


@pytest.mark.parametrize(
    "name", ["gen_ai.usage.input_tokens", "k8s.pod.name", "@scope/pkg", "_private", "OAuth2Client"]
)
def test_code_names(name: str) -> None:
    assert is_code_name(name)


@pytest.mark.parametrize("text", ["two words", "a1b2c3d4", "x" * 129, "naïve", "a..b...c", "1234"])
def test_other_texts_are_no_code_names(text: str) -> None:
    assert not is_code_name(text)


def test_keys_are_matched_whole_and_indices_are_digits() -> None:
    assert kind_of("gen_ai.prompt.3.role") is KeyKind.NAME
    assert kind_of("gen_ai.prompt.x.role") is KeyKind.CONTENT
    assert kind_of("xgen_ai.request.model") is KeyKind.CONTENT
    assert kind_of("gen_ai.request.model.x") is KeyKind.CONTENT
    assert kind_of("gen_ai.usage." + "x" * 300) is KeyKind.CONTENT
