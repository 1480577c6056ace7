"""Secrets that a provider's stream sends in bits, in every form in which streams are recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.redaction.streams import may_hold_stream

REDACTOR = Redactor(bytes(32))
SECRET = "sk-ant-api03-" + "Zk3vQ8pLm2Xw9Rt5Yb7Nc4Hd6Jf1Gs0Aq" * 2 + "-AA"
WHOLE = f"the key is {SECRET} and no other"
MARKER = REDACTOR.redact_text(SECRET).text

Chunks = list[dict[str, Any]]


def chat(bits: list[str]) -> Chunks:
    return [
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "choices": [
                {"index": 1, "delta": {"content": "-"}},
                {"index": 0, "delta": {"content": bit}},
            ],
        }
        for bit in bits
    ]


def chat_arguments(bits: list[str]) -> Chunks:
    return [
        {
            "object": "chat.completion.chunk",
            "choices": [
                {"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": b}}]}}
            ],
        }
        for b in bits
    ]


def responses(bits: list[str]) -> Chunks:
    kind = "response.output_text.delta"
    return [
        {"type": kind, "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": bit}
        for bit in bits
    ]


def anthropic(bits: list[str]) -> Chunks:
    return [
        {"type": "message_start", "message": {"id": "msg_1", "model": "claude"}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": kind, name: bit}}
            for bit in bits
            for kind, name in [("text_delta", "text")]
        ),
        {"type": "message_stop"},
    ]


def anthropic_input(bits: list[str]) -> Chunks:
    return [
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": bit},
        }
        for bit in bits
    ]


def gemini(bits: list[str]) -> Chunks:
    return [{"candidates": [{"content": {"parts": [{"text": bit}]}, "index": 0}]} for bit in bits]


def sse(chunks: Chunks) -> str:
    return (
        "".join(f"event: x\ndata: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    )


def compact_sse(chunks: Chunks) -> str:
    return "".join(f"data:{json.dumps(one, separators=(',', ':'))}\r\n\r\n" for one in chunks)


def in_json(chunks: Chunks) -> str:
    return json.dumps({"status": 200, "body": json.dumps({"raw": sse(chunks)})})


def lines(chunks: Chunks) -> str:
    """JSON objects, a line each."""
    return "".join(f"{json.dumps(chunk)}\n" for chunk in chunks)


def cut_off(chunks: Chunks) -> str:
    """A list whose end never came."""
    return json.dumps(chunks)[:-1] + ', {"type": "text'


def listed_texts(chunks: Chunks) -> str:
    return json.dumps([json.dumps(chunk) for chunk in chunks])


def completions(bits: list[str]) -> Chunks:
    return [{"object": "text_completion", "choices": [{"index": 0, "text": bit}]} for bit in bits]


def ollama(bits: list[str]) -> Chunks:
    return [{"model": "m", "message": {"content": bit}, "done": False} for bit in bits]


def bedrock(bits: list[str]) -> Chunks:
    return [{"contentBlockDelta": {"delta": {"text": b}, "contentBlockIndex": 0}} for b in bits]


def plain(chunks: Chunks) -> str:
    """A stream whose events are text."""
    return "".join(f"data: {bit}\n\n" for bit in bits_of(chunks))


def bits_of(value: Any) -> list[str]:
    """Return the texts that are said bit by bit, of all chunks in order."""
    if isinstance(value, list):
        return [bit for one in value for bit in bits_of(one)]
    if isinstance(value, dict):
        names = ("content", "text", "delta", "arguments", "partial_json")
        here = [value[name] for name in names if isinstance(value.get(name), str)]
        return here + [bit for one in value.values() for bit in bits_of(one)]
    return []


APIS = [
    chat, chat_arguments, responses, anthropic, anthropic_input, gemini,
    completions, ollama, bedrock,
]  # fmt: skip
FORMS: list[Callable[[Chunks], str]] = [
    sse, compact_sse, json.dumps, in_json, lines, cut_off, listed_texts, plain,
]  # fmt: skip


def said(form: Callable[[Chunks], str], text: str) -> str:
    """Return what a recorded stream says, put together."""
    if form is in_json:
        text = json.loads(json.loads(text)["body"])["raw"]
    if form is plain:
        return "".join(line[6:] for line in text.split("\n") if line.startswith("data: "))
    if form is cut_off:
        text, form = text.rpartition(", {")[0] + "]", json.dumps
    if form is lines:
        text, form = f"[{','.join(text.splitlines())}]", json.dumps
    if form in (json.dumps, listed_texts):
        chunks = [json.loads(one) if isinstance(one, str) else one for one in json.loads(text)]
    else:
        sent = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
        chunks = [json.loads(line) for line in sent if line != "[DONE]"]
    return "".join(bit for bit in bits_of(chunks) if bit != "-")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.__name__)
@settings(max_examples=15)
@given(data=st.data())
def test_a_secret_in_bits_is_cut_out_and_nothing_else(
    api: Callable[[list[str]], Chunks], form: Callable[[Chunks], str], data: st.DataObject
) -> None:
    cuts = data.draw(st.lists(st.integers(1, len(WHOLE) - 1), min_size=1, max_size=9, unique=True))
    edges = [0, *sorted(cuts), len(WHOLE)]
    bits = [WHOLE[start:end] for start, end in pairwise(edges)]
    text = form(api(bits))

    clean, findings = REDACTOR.redact_bytes(text.encode(), "text/event-stream")

    if form is plain and api is chat:
        return  # its second choice stands between the bits: one text of another order
    assert said(form, clean.decode()) == WHOLE.replace(SECRET, MARKER)
    assert [(one.rule, one.count) for one in findings] == [("anthropic", 1)]
    assert REDACTOR.scan_bytes(text.encode())
    assert REDACTOR.redact_bytes(clean, "text/event-stream") == (clean, [])


@pytest.mark.parametrize("form", [sse, json.dumps, lines], ids=lambda form: form.__name__)
@pytest.mark.parametrize("api", [chat, anthropic_input, gemini], ids=lambda api: api.__name__)
def test_a_secret_that_repeats_itself_is_cut_out_wherever_it_is_cut(api: Any, form: Any) -> None:
    # A bit that begins with the whole of the bit before it looks like one that repeats it.
    period = (len(SECRET) - len("sk-ant-api03--AA")) // 2
    begin = WHOLE.index("Zk3v")
    for start in range(begin - 3, begin + period):
        bits = [WHOLE[:start], WHOLE[start : start + period], WHOLE[start + period :]]
        for cut in (bits, [WHOLE[:1], WHOLE[1:start], *bits[1:]]):
            clean = REDACTOR.redact_bytes(form(api(cut)).encode(), "text/event-stream")[0]

            assert said(form, clean.decode()) == WHOLE.replace(SECRET, MARKER)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.__name__)
def test_a_stream_without_a_secret_keeps_its_bytes(api: Any, form: Any) -> None:
    text = form(api(["no ", "key ", "here ", "sk-", "ant"]))

    assert REDACTOR.redact_text(text) == (text, [])


@pytest.mark.parametrize(
    "text",
    [
        "data: {",
        "data: {" * 10_000,
        "[" * 100_000 + '"candidates"',
        '{"candidates": ' * 5_000,
        'data: {"choices": 1}\n\ndata: [1]\n\ndata: {"type": ["delta"]}\n\n',
        '["x", {"type": "x.delta", "index": {"a": 1}, "delta": "sk-"}, null, {"candidates": 1}]',
        'data: {"object": "chat.completion.chunk", "choices": "\\ud83d"}\n\n',
        "data: {\udc80\n\ndata: \udc80\n\n",
    ],
)
def test_what_only_looks_like_a_stream_stays_as_it_came(text: str) -> None:
    assert may_hold_stream(text.encode("utf-8", "surrogatepass"))
    assert REDACTOR.redact_text(text) == (text, [])


def test_bytes_that_are_no_text_stay_around_what_is_cut() -> None:
    half = SECRET[:20].encode(), SECRET[20:].encode()
    raw = b"\xff\xfe\ndata: " + half[0] + b"\n\ndata: " + half[1] + b"\xff\n\n"

    clean, findings = REDACTOR.redact_bytes(raw)

    assert clean == b"\xff\xfe\ndata: " + MARKER.encode() + b"\n\ndata: \xff\n\n"
    assert len(findings) == 1


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("other", ["AKIAZ7XQ3LMNV5RT2WPB", "no secret"])
def test_a_secret_in_two_lines_of_an_event_is_cut_out_whatever_is_in_its_other_lines(
    other: str, end: str
) -> None:
    lines = [other, f"the key is {SECRET[:20]}", f"{SECRET[20:]} and no other", "", "last", ""]
    event = end.join(f"data: {line}" if line else "" for line in lines)

    clean = REDACTOR.redact_text(event).text

    kept = REDACTOR.redact_text(other).text
    expected = [kept, f"the key is {MARKER}", " and no other", "", "last", ""]
    assert clean == end.join(f"data: {line}" if line else "" for line in expected)


@pytest.mark.parametrize(
    "form", [sse, compact_sse, json.dumps, lines, cut_off], ids=lambda form: form.__name__
)
def test_secrets_anywhere_in_a_stream_of_megabytes_are_cut_out(
    form: Callable[[Chunks], str],
) -> None:
    bits = [WHOLE[at : at + 3] for at in range(0, len(WHOLE), 3)] + [" word"] * 150
    rounds = 400
    text = form(gemini(bits * rounds))
    assert len(text) > 5_000_000

    clean, findings = REDACTOR.redact_text(text)

    cleaned = WHOLE.replace(SECRET, MARKER) + " word" * 150
    assert said(form, clean) == cleaned * rounds
    assert [(one.rule, one.count) for one in findings] == [("anthropic", rounds)]
    assert REDACTOR.redact_text(clean) == (clean, [])


MEASURED = """
import resource, sys
from hansard_compiler.redaction.redactor import Redactor

text, redactor = eval(sys.argv[1]), Redactor(bytes(32))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert redactor.redact_text(text) == (text, [])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "'data: {}\\n\\n' * 800_000",
        "'data:' + '\\r' * 8_000_000",
        '\'{"delta":"a"}\' * 600_000',
        "'[' + '{\"delta\":\"a\"},' * 600_000 + '{}]'",
        "'{\"delta\":[' + '{},' * 2_700_000 + '{}]}'",
        "'{\"delta\":[' + '\"a\",' * 2_000_000 + '\"a\"]}'",
        "'data: {\"delta\":[' + '[],' * 2_700_000 + '[]]}'",
        "'data: {\"delta\":[' + '\"a\",' * 1_500_000 + '\"a\"]}'",
        "'0:\"a\"\\n' * 600_000",
        "'[\"a\"]\\n' * 600_000",
        "'[{},{\"candidates\":' * 90 + '[' + '\"abcd\",' * 100_000 + '1]' + '}]' * 90",
    ],
)
def test_a_stream_of_eight_megabytes_is_searched_in_bounded_memory(text: str) -> None:
    asked = [sys.executable, "-c", MEASURED, text]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)

    assert int(done.stdout) < 250 * 1024  # KiB
