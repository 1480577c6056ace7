"""Secrets in less usual forms: events of several lines, numbered attributes, UTF-16.

And what only looks like a secret before its escapes are undone.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.transfer import export_store
from tests.collector.ingesting import Ingesting, traces
from tests.collector.test_redact import OPAQUE, REDACTOR

SECRET = "sk-ant-api03-" + "Zk3vQ8pLm2Xw9Rt5Yb7Nc4Hd6Jf1Gs0Aq" * 2 + "-AA"
HALVES = (SECRET[:41], SECRET[41:])
BITS = ("the key is ", *HALVES, " and no other")
MARKER = REDACTOR.redact_text(SECRET).text


def pretty_event(bit: str, end: str = "\n") -> str:
    """An event whose JSON is written over several `data:` lines."""
    chunk = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": bit}}
    lines = json.dumps(chunk, indent=1).split("\n")
    return "event: x" + end + "".join(f"data: {line}{end}" for line in lines) + end


def bare_event(bit: str) -> str:
    """The same without the spaces: `data:` begins with no brace that follows it closely."""
    return f'id: 7\ndata:\ndata:{{"type": "x",\ndata:"text":{json.dumps(bit)}}}\n\n'


def sent(attributes: dict[str, Any]) -> Span:
    pairs = [
        KeyValue(
            key=key,
            value=AnyValue(bytes_value=one)
            if isinstance(one, bytes)
            else AnyValue(string_value=one),
        )
        for key, one in attributes.items()
    ]
    return Span(
        trace_id=b"t" * 16,
        span_id=b"s" * 8,
        name="chat",
        start_time_unix_nano=1,
        end_time_unix_nano=2,
        attributes=pairs,
    )


def stored(path: Path, attributes: dict[str, Any]) -> tuple[bytes, str]:
    """Return every byte of the store's files, and what is exported from it."""
    ingesting = Ingesting(path, retention="redacted_payloads")
    ingesting.send(traces([sent(attributes)]))
    exported = b"".join(export_store(ingesting.folder)).decode()
    ingesting.close()
    files = [one.read_bytes() for one in sorted(path.rglob("*")) if one.is_file()]
    return b"".join(files), exported


def numbered(name: str, *, after: str = "", at: int = 8) -> dict[str, str]:
    """Bits under names that differ in a number, sent in the order of their letters."""
    pairs = {f"{name}{number}{after}": bit for number, bit in enumerate(BITS, at)}
    return dict(sorted(pairs.items()))


SPLIT: dict[str, dict[str, Any]] = {
    "events of several lines": {"body": "".join(map(pretty_event, BITS))},
    "with carriage returns": {"body": "".join(pretty_event(bit, "\r\n") for bit in BITS)},
    "without spaces": {"body": "".join(map(bare_event, BITS))},
    "in a JSON text": {"body": json.dumps({"raw": "".join(map(pretty_event, BITS))})},
    "lines of text": {"body": f"data: a\ndata: {HALVES[0]}\n\ndata: {HALVES[1]}\ndata: b\n\n"},
    "two lines of an event": {"body": f"event: x\ndata: {HALVES[0]}\ndata: {HALVES[1]}\n\n"},
    "events with ids": {"body": f"id: 1\ndata: {HALVES[0]}\n\nid: 2\ndata: {HALVES[1]}\n\n"},
    "numbered chunks": numbered("llm.chunks."),
    "numbered names": numbered("app.said."),
    "brackets": numbered("answer[", after="]"),
    "numbered deltas": numbered("choices.0.delta.", after=".content"),
    "chunks of choices": numbered("llm.chunks.", after=".choices.0.text"),
    "numbered JSON": {
        f"reply_{at}": json.dumps({"id": str(at), "text": bit}) for at, bit in enumerate(BITS)
    },
}


@pytest.mark.parametrize("name", SPLIT)
def test_no_file_of_the_store_holds_a_half(name: str, tmp_path: Path) -> None:
    files, exported = stored(tmp_path, SPLIT[name])

    for half in HALVES:
        assert half.encode() not in files
        assert half not in exported
    assert exported.count("redacted:anthropic") == 1


def test_what_stands_around_a_cut_stays(tmp_path: Path) -> None:
    other = ": a comment\nevent: ping\ndata: {}\n\n"

    clean = REDACTOR.redact_text(other + "".join(map(pretty_event, BITS))).text

    assert clean.startswith(other + pretty_event(BITS[0]))
    assert clean.endswith(pretty_event(BITS[-1]))
    events = [one for one in clean.removeprefix(other).split("\n\n") if one]
    lines = [[line[6:] for line in one.split("\n") if line.startswith("data: ")] for one in events]
    texts = [json.loads("\n".join(one))["delta"]["text"] for one in lines]
    assert "".join(texts) == "".join(BITS).replace(SECRET, MARKER)
    assert REDACTOR.redact_text(clean) == (clean, [])


def test_lines_of_text_stay_lines() -> None:
    text = f"data: see\ndata: {HALVES[0]}\n\nid: 4\ndata: {HALVES[1]}\ndata: end\n\n"

    clean = REDACTOR.redact_text(text).text

    assert clean == f"data: see\ndata: {MARKER}\n\nid: 4\ndata: \ndata: end\n\n"


CLEAN: dict[str, Any] = {
    "body": "".join(pretty_event(bit) for bit in ("no ", "key ", "sk-", "here")),
    "yaml": "kind: ConfigMap\nmetadata:\n  name: x\ndata:\n  a: b\ndata: c\n\ndata:\tz\n",
    "llm.chunks.0": "sk-",
    "llm.chunks.1": "ant no key",
    "app.said.10": '{ "text" :  "a" }',
    "app.said.9": '{ "text" :  "b" }',
    "wide": "no key, but a long text of 16 bits".encode("utf-16"),
    "sound": bytes(range(32, 120)) * 4 + b"".join(bytes((n, 0)) for n in range(32, 120)),
}


def test_attributes_without_a_secret_are_exported_byte_by_byte(tmp_path: Path) -> None:
    _, exported = stored(tmp_path, CLEAN)

    [line] = [line for line in exported.splitlines() if "resourceSpans" in line]
    [resource] = json.loads(line)["resourceSpans"]
    [[span]] = [scope["spans"] for scope in resource["scopeSpans"]]
    values = {pair["key"]: pair["value"] for pair in span["attributes"]}
    assert values.keys() == CLEAN.keys()
    for key, value in values.items():
        [(kind, text)] = value.items()
        assert (base64.b64decode(text) if kind == "bytesValue" else text) == CLEAN[key]


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f'{{"городъ": "Köln", "key": "{SECRET}", "и": "日本"}}',
        f'{{"password": "{OPAQUE}"}}',
        f"я{SECRET}я",
        pretty_event(HALVES[0]) + pretty_event(HALVES[1]),
    ],
    ids=["bare", "json", "named", "between letters", "stream"],
)
def test_a_key_in_utf_16_is_cut_out_in_utf_16(
    order: str, mark: str, text: str, tmp_path: Path
) -> None:
    files, exported = stored(tmp_path, {"raw": (mark + text).encode(order) + b"\n"})

    for half in (*HALVES, OPAQUE):
        assert half.encode(order) not in files
    sent_on = re.search(r'"bytesValue":"([^"]*)"', exported)
    assert sent_on
    kept = base64.b64decode(sent_on[1])
    assert "redacted:".encode(order) in kept
    assert not any(half.encode(order) in kept for half in (*HALVES, OPAQUE))
    raw = (mark + text).encode(order)
    clean, found = REDACTOR.redact_bytes(raw)
    assert clean.decode(order) == REDACTOR.redact_text(mark + text).text
    assert len(found) == 1
    assert REDACTOR.scan_bytes(raw)
    assert REDACTOR.redact_bytes(clean) == (clean, [])


PROSE = ("Неверныйтокендоступа", "請輸入您的訪問令牌以繼續操作謝謝", "Токендоступа2", "كلمةالمرور")


@pytest.mark.parametrize("prose", PROSE)
@pytest.mark.parametrize("name", ["token", "access_token", "password"])
def test_letters_that_are_escaped_are_no_secret(prose: str, name: str, tmp_path: Path) -> None:
    document = json.dumps({"error": {name: prose}})
    attributes = {"body": document, "outer": json.dumps({"raw": document}), name: document}

    _, exported = stored(tmp_path, attributes)

    assert "redacted:" not in exported
    assert json.dumps(document)[1:-1] in exported


def test_a_secret_among_escapes_is_one_still() -> None:
    document = json.dumps({"password": "Pässwört-" + OPAQUE, "token": "ключ" + SECRET})

    clean, found = REDACTOR.redact_text(document)

    assert OPAQUE not in clean
    assert SECRET not in clean
    assert len(found) == 2
    hidden = '{"password": "' + "".join(f"\\u{ord(one):04x}" for one in OPAQUE) + '"}'
    assert json.loads(REDACTOR.redact_text(hidden).text)["password"].startswith("‹redacted:")
