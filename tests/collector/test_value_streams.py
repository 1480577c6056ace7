"""Secrets in streams of JSON values of any form: what a field is called says nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from hansard_collector.pipeline.requests import Signal
from hansard_collector.transfer import export_store
from tests.collector.ingesting import Ingesting, logs, traces
from tests.collector.payload_maker import record
from tests.collector.test_odd_secrets import sent
from tests.collector.test_redact import REDACTED, REDACTOR, only_span, span, spans

CORE = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY5z9Q"
KEY = f"ghp_{CORE}"
PASSWORD = "Zx8Kq2Lm9Np4Rt7V"
MARKER = REDACTOR.redact_text(KEY).text
WHOLE = f"the key is {KEY}, and no other"

Form = Callable[[Sequence[str]], str]


def events(chunks: Sequence[Any], name: str = "message") -> str:
    return "".join(f"event: {name}\ndata: {json.dumps(one)}\n\n" for one in chunks)


def lines(chunks: Sequence[Any], prefix: str = "") -> str:
    return "".join(f"{prefix}{json.dumps(one, separators=(',', ':'))}\n" for one in chunks)


def langgraph(bits: Sequence[str]) -> str:
    metadata = {"langgraph_node": "agent", "langgraph_step": 1}
    chunks = [[{"content": bit, "type": "AIMessageChunk", "id": "run-1"}, metadata] for bit in bits]
    return events(chunks, "messages")


def langgraph_lines(bits: Sequence[str]) -> str:
    return lines([["messages", [{"content": bit, "id": "run-1"}, {"step": 1}]] for bit in bits])


def bare_strings(bits: Sequence[str]) -> str:
    return events(bits)


def vercel(bits: Sequence[str]) -> str:
    return f'f:{{"messageId":"m"}}\n{lines(bits, "0:")}d:{{"finishReason":"stop"}}\n'


def vercel_reasoning(bits: Sequence[str]) -> str:
    return lines(bits, "g:")


def vercel_calls(bits: Sequence[str]) -> str:
    calls = [{"toolCallId": "c", "argsTextDelta": bit} for bit in bits]
    return lines([{"toolCallId": "c", "toolName": "n"}], "b:") + lines(calls, "c:")


def vercel_in_json(bits: Sequence[str]) -> str:
    return json.dumps({"status": 200, "body": vercel(bits)})


def cohere(bits: Sequence[str]) -> str:
    return lines([{"event_type": "text-generation", "text": bit} for bit in bits])


def other_lines(bits: Sequence[str]) -> str:
    return lines([{"n": at, "said": {"x": [{"it": bit}]}} for at, bit in enumerate(bits)])


def after_a_line(bits: Sequence[str]) -> str:
    return "HTTP/1.1 200 OK\n\n" + cohere(bits)


def list_of_chunks(bits: Sequence[str]) -> str:
    return json.dumps([{"event_type": "text-generation", "text": bit} for bit in bits])


def _logprobs(bits: Sequence[str]) -> dict[str, Any]:
    content = [
        {
            "token": bit,
            "logprob": -0.1,
            "bytes": list(bit.encode()),
            "top_logprobs": [
                {"token": one, "logprob": -0.1, "bytes": list(one.encode())} for one in (bit, "~")
            ],
        }
        for bit in bits
    ]
    return {"content": content}


def logprobs(bits: Sequence[str]) -> str:
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": bit}, "logprobs": _logprobs([bit])}]}
        for bit in bits
    ]
    return events(chunks)


def logprobs_in_pairs(bits: Sequence[str]) -> str:
    pairs = [bits[at : at + 2] for at in range(0, len(bits), 2)]
    chunks = [{"choices": [{"index": 0, "logprobs": _logprobs(pair)}]} for pair in pairs]
    return events(chunks)


def logprobs_at_once(bits: Sequence[str]) -> str:
    message = {"role": "assistant", "content": "".join(bits)}
    return json.dumps({"choices": [{"message": message, "logprobs": _logprobs(bits)}]})


def logprobs_of_completions(bits: Sequence[str]) -> str:
    said = {"tokens": list(bits), "token_logprobs": [-0.1 for _ in bits]}
    return json.dumps({"choices": [{"text": "".join(bits), "logprobs": said}]})


def bytes_alone(bits: Sequence[str]) -> str:
    return json.dumps({"type": "Buffer", "data": list("".join(bits).encode())})


def _cumulative(bits: Sequence[str]) -> list[str]:
    return ["".join(bits[:end]) for end in range(1, len(bits) + 1)]


def snapshots(bits: Sequence[str]) -> str:
    return events([{"type": "partial", "snapshot": text} for text in _cumulative(bits)])


def adk(bits: Sequence[str]) -> str:
    texts = _cumulative(bits)
    return events([{"content": {"parts": [{"text": one}]}, "partial": True} for one in texts])


def deltas_and_snapshots(bits: Sequence[str]) -> str:
    both = zip(bits, _cumulative(bits), strict=True)
    return lines([{"type": "text", "text": bit, "snapshot": text} for bit, text in both])


FORMS: list[Form] = [
    langgraph, langgraph_lines, bare_strings, vercel, vercel_reasoning, vercel_calls,
    vercel_in_json, cohere, other_lines, after_a_line, list_of_chunks, logprobs,
    logprobs_in_pairs, logprobs_at_once, logprobs_of_completions, bytes_alone, snapshots, adk,
    deltas_and_snapshots,
]  # fmt: skip


def cut(text: str, letters: int) -> list[str]:
    return [text[at : at + letters] for at in range(0, len(text), letters)]


def known_letters(text: str) -> int:
    """Return how many letters of the key, from its first on, are still to be had of a text.

    Read are the values of each name, in order, and of such as say everything twice, in strides.
    """
    text = text.replace('\\"', '"')
    named: dict[str, list[str]] = {}
    name = ""
    for found, colon in re.findall(r'("[^"\\\n]*"|\[(?:\d+, ?)*\d+\])(:?)', text):
        value = json.loads(found)
        if colon:
            name = value
        else:
            piece = value if isinstance(value, str) else bytes(value).decode()
            named.setdefault(name, []).append(piece)
    said = [text]
    for pieces in named.values():
        said += ["".join(pieces[at::step]) for step in (1, 2, 3) for at in range(step)]
        said.append("".join(one for one in pieces if one in KEY))
    every = "\n".join(said)
    return max(at for at in range(len(CORE) + 1) if CORE[:at] in every)


def as_attribute(text: str) -> str:
    request = spans(span(reply=text))
    if not REDACTED.begin_scan(request, None).result():  # type: ignore[arg-type]  # small: none is asked
        REDACTED.apply(Signal.TRACES, request)
    return only_span(request).attributes[0].value.string_value


def as_payload(text: str) -> str:
    raw = text.encode()
    return (REDACTOR.redact_bytes(raw)[0] if REDACTOR.scan_bytes(raw) else raw).decode()


@pytest.mark.parametrize("place", [as_attribute, as_payload], ids=lambda one: one.__name__)
@pytest.mark.parametrize("letters", [1, 3, 7])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_a_key_in_pieces_is_cut_out(form: Form, letters: int, place: Callable[[str], str]) -> None:
    text = form(cut(WHOLE, letters))
    assert known_letters(text) == len(CORE)

    kept = place(text)

    assert known_letters(kept) < 4
    assert REDACTOR.redact_text(kept) == (kept, [])


@pytest.mark.parametrize("form", [snapshots, adk, deltas_and_snapshots], ids=lambda f: f.__name__)
@pytest.mark.parametrize("letters", [1, 3, 7])
def test_a_password_that_grows_is_cut_out_of_every_chunk(form: Form, letters: int) -> None:
    text = form(cut(f"db is postgres://app:{PASSWORD}@host/db, see there", letters))

    kept = REDACTOR.redact_text(text).text

    assert PASSWORD[:3] not in kept
    assert kept.count("see there") == text.count("see there")


@pytest.mark.parametrize("letters", [1, 3, 7])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_what_is_no_key_keeps_its_bytes(form: Form, letters: int) -> None:
    text = form(cut("the keys are ghp_ and sk-, as in password: reset, ----- or ========", letters))

    assert REDACTOR.redact_text(text) == (text, [])


def test_what_stands_around_a_key_in_growing_texts_stays() -> None:
    texts = _cumulative(cut(WHOLE, 5))

    kept = REDACTOR.redact_text(lines([{"all": one} for one in texts])).text

    found = [json.loads(line)["all"] for line in kept.splitlines()]
    assert found[:2] == texts[:2]
    assert found[-1] == WHOLE.replace(KEY, MARKER)
    assert all(WHOLE.replace(KEY, MARKER).startswith(one) for one in found)


def test_prefixes_of_lines_stay() -> None:
    kept = REDACTOR.redact_text(vercel(cut(WHOLE, 9))).text

    said = [json.loads(line[2:]) for line in kept.splitlines() if line.startswith("0:")]
    assert kept.startswith('f:{"messageId":"m"}\n0:"the key i"\n')
    assert kept.endswith('d:{"finishReason":"stop"}\n')
    assert "".join(said) == WHOLE.replace(KEY, MARKER)


def test_a_key_that_grows_over_megabytes_is_cut_out_of_every_chunk() -> None:
    text = f"{'word ' * 200}{WHOLE} {'word ' * 400}"
    texts = _cumulative(cut(text, 3))
    stream = lines([{"all": one} for one in texts])
    assert len(stream) > 1_000_000

    kept = REDACTOR.redact_text(stream).text

    assert CORE[:4] not in kept
    assert json.loads(kept.splitlines()[-1])["all"] == text.replace(KEY, MARKER)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_no_file_of_the_store_holds_a_half(form: Form, tmp_path: Path) -> None:
    halves = (KEY[:20], KEY[20:])
    text = form(("the key is ", *halves, ", and no other"))
    ingesting = Ingesting(tmp_path, retention="redacted_payloads")
    made = sent({"reply": text})
    made.events.add(name="x").attributes.add(key="reply", value=AnyValue(string_value=text))
    listed = made.attributes.add(key="listed").value.array_value
    for line in text.splitlines():
        listed.values.add(string_value=line)

    ingesting.send(traces([made]))
    body = LogRecord(time_unix_nano=1, body=AnyValue(string_value=text))
    ingesting.send(logs([body, record(text.encode(), media_type="text/event-stream")]))
    exported = b"".join(export_store(ingesting.folder)).decode()
    ingesting.close()

    files = b"".join(one.read_bytes() for one in tmp_path.rglob("*") if one.is_file())
    for half in halves:
        spelled = json.dumps(list(half.encode()))[1:-1]
        for kept in (half, spelled, spelled.replace(" ", "")):
            assert kept not in exported
            assert kept.encode() not in files
