"""What each retention mode leaves on disk and on pages, seen from outside a running server."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
import zstandard

from hansard_collector.otlp.json_codec import encode_json
from hansard_collector.pipeline.requests import Signal
from tests.collector.fields import REQUESTS, places
from tests.journeys.processes import Serving, serving

SECRET = "sk-ant-api03-" + "Zq8vT1mXw4KcR7bYn2LdHs9PfGu3JeQa6WoVi5Bt" * 2 + "-AAAAAA"
WORD = "quokkacanary"
TEXT = f"the {WORD} said {SECRET} to everyone"


def every_field(signal: Signal) -> Any:
    """Return one request with the text in every field that can hold text or bytes."""
    whole = REQUESTS[signal]()
    for number, place in enumerate(places(signal), start=1):
        request = place.request_with(TEXT)
        _give_ids(request, number)
        whole.MergeFrom(request)
    return whole


def _give_ids(request: Any, number: int) -> None:
    """Make spans valid where the text does not stand in the id itself."""
    for resource in getattr(request, "resource_spans", ()):
        for scope in resource.scope_spans:
            for span in scope.spans:
                span.trace_id = span.trace_id or b"retention" + number.to_bytes(7, "big")
                span.span_id = span.span_id or number.to_bytes(8, "big")


def send(server: Serving) -> None:
    for signal in Signal:
        request = every_field(signal)
        _post(server, signal, request.SerializeToString(), "application/x-protobuf")
        _post(server, signal, json.dumps(encode_json(request)).encode(), "application/json")


def _post(server: Serving, signal: Signal, body: bytes, media_type: str) -> None:
    headers = {"content-type": media_type}
    request = urllib.request.Request(f"{server.http}/v1/{signal}", body, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert SECRET.encode() not in answer.read()


def everything_shown(server: Serving) -> str:
    """Return the source of every page and answer that shows what was recorded."""
    runs = json.loads(server.get("/v1/runs?limit=500"))["items"]
    paths = ["/", f"/search?q={WORD}", f"/v1/search?q={WORD}", "/health", "/v1/ledger", "/usage"]
    for run in runs:
        run_id = run["run_id"]
        paths += [f"/v1/runs/{run_id}/export?format=otlp-json", f"/v1/runs/{run_id}/steps"]
    for run in runs[:: max(1, len(runs) // 12)]:
        run_id = run["run_id"]
        paths += [
            f"/runs/{run_id}",
            f"/runs/{run_id}?view=conversation",
            f"/runs/{run_id}?view=log",
        ]
        for step in json.loads(server.get(f"/v1/runs/{run_id}/steps"))["items"]:
            paths += [f"/v1/steps/{step['step_id']}", f"/steps/{step['step_id']}"]
    return "\n".join(server.get(path).decode("utf-8", "replace") for path in paths)


def everything_stored(data: Path) -> Iterator[bytes]:
    """Yield every byte there is: files as they are, and every packed value unpacked."""
    for file in sorted(data.rglob("*")):
        if file.is_file():
            yield file.read_bytes()
    database = apsw.Connection(str(data / "hansard.db"), flags=apsw.SQLITE_OPEN_READONLY)
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
    for (table,) in database.execute(tables).fetchall():
        for row in database.execute(f'SELECT * FROM "{table}"'):
            for value in row:
                if isinstance(value, str):
                    yield value.encode()
                elif isinstance(value, bytes):
                    yield _unpacked(value)
    database.close()


def _unpacked(value: bytes) -> bytes:
    if value[:1] != b"\1":
        return value
    try:
        return zstandard.ZstdDecompressor().decompress(value[1:])
    except zstandard.ZstdError:
        return value


def found_by_search(data: Path, word: str) -> int:
    database = apsw.Connection(str(data / "hansard.db"), flags=apsw.SQLITE_OPEN_READONLY)
    sql = "SELECT count(*) FROM text_fts WHERE text_fts MATCH ?"
    count = int(database.execute(sql, (f'"{word}"',)).get)
    database.close()
    return count


def holds(data: Path, text: str) -> bool:
    wanted = text.encode()
    return any(wanted in piece for piece in everything_stored(data))


@pytest.mark.covers("RC-20")
def test_metadata_only_keeps_no_content_anywhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path, "--retention", "metadata_only") as server:
        send(server)
        shown = everything_shown(server).replace(f"q={WORD}", "").replace(f'value="{WORD}"', "")
        assert server.stop() == 0

    assert SECRET not in shown
    assert not holds(tmp_path, SECRET)
    assert not holds(tmp_path, WORD)
    assert found_by_search(tmp_path, WORD) == 0
    assert WORD not in capfd.readouterr().err


@pytest.mark.covers("RC-21", "RC-23")
def test_the_default_keeps_all_but_the_secret(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path) as server:
        send(server)
        shown = everything_shown(server)
        assert server.stop() == 0

    assert SECRET not in shown
    assert not holds(tmp_path, SECRET)
    assert not holds(tmp_path, SECRET[20:60])
    assert WORD in shown
    assert "‹redacted:" in shown
    assert found_by_search(tmp_path, WORD) > 0
    assert SECRET not in capfd.readouterr().err


@pytest.mark.covers("RC-19", "RC-22")
def test_full_payloads_keeps_everything(tmp_path: Path) -> None:
    with serving(tmp_path, "--retention", "full_payloads") as server:
        send(server)
        shown = everything_shown(server)
        assert server.stop() == 0

    assert SECRET in shown
    assert holds(tmp_path, SECRET)


@pytest.mark.covers("RC-19")
def test_a_mode_that_does_not_exist_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match="ended with 2"),
        serving(tmp_path, "--retention", "some_payloads"),
    ):
        raise AssertionError("it started")
