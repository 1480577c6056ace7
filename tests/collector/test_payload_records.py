"""Payloads sent as log records: checked, kept by the retention mode, counted, and no logs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from hansard_collector import payloads
from hansard_store.content.payloads import INLINE_BYTES, get_payload, read_payload
from tests.collector.ingesting import Ingesting, log, logs
from tests.collector.payload_maker import (
    SECRET,
    digest_of,
    kept_somewhere,
    record,
    ref_of,
)

Open = Callable[[str], Ingesting]
LARGE = bytes(range(256)) * (INLINE_BYTES // 256 + 1)
BODY = b'{"question": "What is the weather?"}'


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Open]:
    """Opens a store in a retention mode."""
    opened: list[Ingesting] = []

    def open_(retention: str) -> Ingesting:
        opened.append(Ingesting(tmp_path / retention, retention=retention))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()


def stored(ingesting: Ingesting, data: bytes) -> bytes:
    """Return the bytes that are kept for those that were sent."""
    payload = get_payload(ingesting.db, digest_of(data))
    return read_payload(ingesting.folder, payload)


@pytest.mark.parametrize(
    "data", [b"", b"\0\0", BODY, LARGE], ids=["empty", "NUL bytes", "inline", "in a file"]
)
def test_the_bytes_of_a_record_are_kept_by_their_digest_and_are_no_log(
    ingesting: Ingesting, data: bytes
) -> None:
    result = ingesting.send(logs([record(data), log()]))

    assert (result.accepted, result.rejected) == (2, 0)
    assert stored(ingesting, data) == data
    assert get_payload(ingesting.db, digest_of(data)).media_type == "application/json"
    assert ingesting.one("SELECT count(*) FROM log_record") == 1
    assert ingesting.ledger("logs")["stored"] == 2


def test_a_payload_sent_again_is_a_duplicate(ingesting: Ingesting) -> None:
    ingesting.send(logs([record(BODY), record(BODY)]))
    ingesting.send(logs([record(BODY)]))

    ledger = ingesting.ledger("logs")
    assert (ledger["received"], ledger["stored"], ledger["duplicate"]) == (3, 1, 2)


def test_an_empty_body_may_lose_its_type_and_a_text_is_its_bytes(ingesting: Ingesting) -> None:
    text = "Grüße"
    untyped = record(b"", body=AnyValue())
    as_text = record(text.encode(), body=AnyValue(string_value=text))

    assert ingesting.send(logs([untyped, as_text])).rejected == 0
    assert stored(ingesting, b"") == b""
    assert stored(ingesting, text.encode()) == text.encode()


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "sha256:",
        "../../etc/passwd",
        "sha256:../../../../etc/cron.d/x" + "0" * 34,
        "sha256:" + "0" * 63,
        "sha256:" + "0" * 65,
        "sha256:" + "g" * 64,
        "sha256:" + "0" * 63 + "\0",
        "sha256:" + "٣" * 64,
        "md5:" + "0" * 32,
        "sha256:" + "0" * 64 + "\n",
    ],
)
def test_a_digest_that_is_none_is_refused_singly(ingesting: Ingesting, ref: str) -> None:
    result = ingesting.send(logs([record(BODY, ref=ref), record(b"good"), log()]))

    assert (result.accepted, result.rejected) == (2, 1)
    assert payloads.NO_DIGEST in result.message
    assert stored(ingesting, b"good") == b"good"
    assert [path for path in ingesting.folder.blobs.rglob("*") if path.is_file()] == []


def test_bytes_of_another_digest_are_refused_singly_and_counted(ingesting: Ingesting) -> None:
    result = ingesting.send(logs([record(BODY, ref=ref_of(b"other")), record(b"good")]))

    assert (result.accepted, result.rejected) == (1, 1)
    assert payloads.WRONG_DIGEST in result.message
    assert ingesting.one("SELECT message FROM refusal") == payloads.WRONG_DIGEST
    assert ingesting.ledger("logs")["rejected"] == 1
    assert ingesting.all("SELECT size FROM payload") == [(4,)]


def test_a_body_that_is_no_bytes_is_refused_singly(ingesting: Ingesting) -> None:
    result = ingesting.send(logs([record(BODY, body=AnyValue(int_value=7)), record(b"good")]))

    assert (result.accepted, result.rejected) == (1, 1)
    assert payloads.NO_BYTES in result.message


def test_a_media_type_that_is_none_is_not_kept(ingesting: Ingesting) -> None:
    told = ["text/html, <b>", "", None, "a/" + "b" * 200, "text/plain; charset=utf-8"]
    data = [bytes([at]) for at in range(len(told))]
    ingesting.send(logs([record(d, media_type=t) for d, t in zip(data, told, strict=True)]))

    kept = [get_payload(ingesting.db, digest_of(one)).media_type for one in data]
    assert kept == ["application/octet-stream"] * 4 + ["text/plain; charset=utf-8"]


def test_other_records_of_the_request_keep_their_order_and_resource(ingesting: Ingesting) -> None:
    request = logs([log(text="one"), record(BODY), log(text="two")], service="mixed")
    request.resource_logs.extend(logs([record(b"x")], service="alone").resource_logs)
    ingesting.send(request)

    assert ingesting.all("SELECT body_text FROM log_record ORDER BY id") == [("one",), ("two",)]
    assert ingesting.one("SELECT service FROM sender") == "mixed"


# ---- retention


def prompt(size: int, secret: str) -> bytes:
    return json.dumps({"text": "word " * (size // 5), "key": secret}).encode()


@pytest.mark.covers("RC-21")
@pytest.mark.parametrize("size", [100, 2_000_000], ids=["inline", "in a file"])
def test_a_secret_is_cut_out_and_the_sent_digest_leads_to_the_rest(
    open_store: Open, size: int
) -> None:
    ingesting = open_store("redacted_payloads")
    data = prompt(size, SECRET)
    ingesting.send(logs([record(data)]))

    payload = get_payload(ingesting.db, digest_of(data))
    kept = read_payload(ingesting.folder, payload)
    assert payload.redacted == "redacted_payloads"
    assert json.loads(kept)["text"] == json.loads(data)["text"]
    assert "‹redacted:anthropic:" in json.loads(kept)["key"]
    assert ingesting.all("SELECT signal, rule, count FROM redaction") == [
        ("payload", "anthropic", 1)
    ]
    assert kept_somewhere(ingesting, SECRET.encode()) == []


def test_a_secret_in_a_digest_or_media_type_reaches_no_disk(open_store: Open) -> None:
    ingesting = open_store("redacted_payloads")
    ingesting.send(logs([record(BODY, media_type=f"text/{SECRET[:78]}"), record(BODY, ref=SECRET)]))

    assert get_payload(ingesting.db, digest_of(BODY)).media_type == "application/octet-stream"
    assert kept_somewhere(ingesting, SECRET[:60].encode()) == []


@pytest.mark.covers("RC-20")
def test_metadata_only_keeps_no_byte_of_a_payload_and_says_so(open_store: Open) -> None:
    ingesting = open_store("metadata_only")
    data = prompt(2_000_000, "violet-canary-77")
    result = ingesting.send(logs([record(data), record(b"violet-canary-77")]))

    assert (result.accepted, result.rejected) == (0, 2)
    assert payloads.NO_CONTENT in result.message
    assert ingesting.ledger("logs")["rejected"] == 2
    assert ingesting.one("SELECT count(*) FROM payload") == 0
    assert kept_somewhere(ingesting, b"violet-canary-77") == []


@pytest.mark.covers("RC-22")
def test_full_payloads_keeps_everything(open_store: Open) -> None:
    ingesting = open_store("full_payloads")
    data = prompt(100_000, SECRET)
    ingesting.send(logs([record(data)]))

    assert stored(ingesting, data) == data


# ---- trouble on the disk


def test_a_payload_that_cannot_be_written_is_the_senders_to_send_again(
    ingesting: Ingesting,
) -> None:
    shelf = ingesting.folder.blobs / digest_of(LARGE).hex()[:2]
    shelf.write_text("in the way")
    request: ExportLogsServiceRequest = logs([record(LARGE), log()])

    with pytest.raises(Exception, match="send it again"):
        ingesting.send(request)
    assert ingesting.one("SELECT count(*) FROM log_record") == 0

    shelf.unlink()
    assert ingesting.send(request).rejected == 0
    assert stored(ingesting, LARGE) == LARGE
