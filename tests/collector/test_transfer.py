"""Import and export: files of every form come in, and what goes out comes in again equal."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import zstandard
from google.protobuf.message import Message

from hansard_collector.derivation.rederivation import read_span
from hansard_collector.otlp.json_codec import encode_json
from hansard_collector.otlp.stored_records import Reexport
from hansard_collector.transfer import export_store, import_files
from hansard_store.maintenance.export import all_ids
from hansard_store.verification.integrity import verify_store
from tests.collector.ingesting import (
    FIXTURES,
    Ingesting,
    conversation,
    fixture_requests,
    log,
    logs,
    span,
    traces,
)

REQUEST = traces([span(1, attributes={"input.value": conversation(3)}), span(2, 1)])
LOGS = logs([log(1), log(None)])


def as_json(message: Message) -> dict[str, Any]:
    return encode_json(message)


def framed(*messages: Message) -> bytes:
    """As the Collector's file exporter writes protobuf: each behind its length."""
    bodies = [message.SerializeToString() for message in messages]
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


BOTH = as_json(REQUEST) | as_json(LOGS)
FORMS: dict[str, bytes] = {
    "one.json": json.dumps(BOTH).encode(),
    "pretty.json": json.dumps(BOTH, indent=2).encode(),
    "with a mark.json": b"\xef\xbb\xbf" + json.dumps(BOTH).encode(),
    "lines.jsonl": b"\n\n".join(json.dumps(as_json(one)).encode() for one in (REQUEST, LOGS)),
    "list.json": json.dumps([as_json(REQUEST), as_json(LOGS)]).encode(),
    "packed.json.gz": gzip.compress(json.dumps(BOTH).encode()),
    "packed.jsonl.zst": zstandard.compress(json.dumps(BOTH).encode()),
}


@pytest.mark.parametrize("name", FORMS)
def test_json_is_read_in_every_form(ingesting: Ingesting, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FORMS[name])

    imported = import_files(ingesting.pipeline, [path])

    assert (imported.accepted, imported.rejected, imported.problems) == (4, 0, [])
    shown = [read_span(ingesting.db, number).message for number in (1, 2)]
    assert shown == list(REQUEST.resource_spans[0].scope_spans[0].spans)
    assert ingesting.one("SELECT count(*) FROM log_record") == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.traces.binpb", REQUEST.SerializeToString()),
        ("no hint.bin", REQUEST.SerializeToString()),
        ("framed.bin", framed(REQUEST, REQUEST)),
        ("packed.pb.gz", gzip.compress(framed(REQUEST))),
        ("packed.pb.zst", zstandard.compress(REQUEST.SerializeToString())),
    ],
)
def test_protobuf_is_read_in_every_form(
    ingesting: Ingesting, tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    imported = import_files(ingesting.pipeline, [path])

    assert imported.problems == []
    assert ingesting.one("SELECT count(*) FROM span") == 2


def test_all_recordings_are_told_apart_without_a_hint_in_their_names(
    ingesting: Ingesting, tmp_path: Path
) -> None:
    for number, path in enumerate(sorted(FIXTURES.glob("*/*.binpb"))):
        shutil.copy(path, tmp_path / f"{number:03}.bin")
    other = Ingesting(tmp_path / "other")
    for signal, body in fixture_requests():
        other.send_bytes(signal, body)

    imported = import_files(ingesting.pipeline, sorted(tmp_path.glob("*.bin")))

    assert imported.problems == []
    for table in ("span", "log_record", "metric_point"):
        count = f"SELECT count(*) FROM {table}"
        assert ingesting.one(count) == other.one(count) > 0
    other.close()


def test_a_large_document_becomes_several_requests(ingesting: Ingesting, tmp_path: Path) -> None:
    spans = [span(n, attributes={"k": "x" * 100_000}) for n in range(1, 100)]
    document = {"resourceSpans": [as_json(traces([one]))["resourceSpans"][0] for one in spans]}
    (tmp_path / "large.json").write_text(json.dumps(document))

    imported = import_files(ingesting.pipeline, [tmp_path / "large.json"])

    assert imported.requests > 2
    assert imported.accepted == 99


def test_importing_twice_changes_nothing(ingesting: Ingesting, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(FORMS["one.json"])
    import_files(ingesting.pipeline, [path])

    again = import_files(ingesting.pipeline, [path, path])

    assert again.accepted == 8
    assert ingesting.one("SELECT count(*) FROM span") == 2
    assert ingesting.one("SELECT count(*) FROM span_duplicate") == 0


PROBLEMS = [
    ("empty.json", b"", []),
    ("nothing.json", b"{}", ["no resourceSpans"]),
    ("text.json", b"{ not json", ["neither JSON nor"]),
    ("lines.jsonl", b'{"resourceSpans": []}\n{"other": 1}\nrubbish\n', ["no res", "no res"]),
    ("x.bin", b"\x00\x01\x02rubbish", ["no OTLP request of any signal"]),
    ("x.traces.binpb", b"\xff\xff\xff", ["no ExportTraceServiceRequest"]),
    ("cut.json.gz", gzip.compress(FORMS["one.json"])[:50], ["cannot be read"]),
    ("cut.json.zst", zstandard.compress(FORMS["one.json"])[:9] + b"rubbish" * 9, ["cannot be"]),
    ("bad.json", json.dumps(as_json(traces([span(1, trace_id=b"x")]))).encode(), ["1 rejected"]),
]


@pytest.mark.parametrize(("name", "content", "told"), PROBLEMS)
def test_what_cannot_be_read_is_told_and_keeps_nothing_else_out(
    ingesting: Ingesting, tmp_path: Path, name: str, content: bytes, told: list[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "z.json").write_bytes(FORMS["one.json"])

    paths = [tmp_path / name, tmp_path / "missing.json", tmp_path / "z.json"]
    imported = import_files(ingesting.pipeline, paths)

    assert imported.accepted == 4
    (missing,) = (one for one in imported.problems if "missing.json" in one.where)
    found = [one for one in imported.problems if one is not missing]
    assert missing.message.startswith("cannot be read")
    assert len(found) == len(told)
    for problem, words in zip(found, told, strict=True):
        assert words in problem.message
        assert name in problem.where


def test_a_line_with_a_problem_is_named(ingesting: Ingesting, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(FORMS["one.json"] + b"\n\nrubbish\n")

    (problem,) = import_files(ingesting.pipeline, [tmp_path / "x.jsonl"]).problems

    assert problem.where.endswith("x.jsonl:3")


def test_a_queue_that_is_full_is_waited_for(tmp_path: Path) -> None:
    small = Ingesting(tmp_path / "data", queue_bytes=1000)
    paths = []
    for number in range(1, 40):
        paths.append(tmp_path / f"{number}.traces.binpb")
        paths[-1].write_bytes(
            traces([span(number, attributes={"k": "x" * 900})]).SerializeToString()
        )

    imported = import_files(small.pipeline, paths)

    assert imported.accepted == 39
    small.close()


# ---- there and back


def everything(ingesting: Ingesting) -> list[Any]:
    """Return all that was received, by what it is, and what was made of it."""
    again = Reexport()
    whole = {"after": 0, "limit": 10**6}
    received = [
        read(ingesting.db, all_ids(ingesting.db, signal, **whole)).SerializeToString()
        for read, signal in (
            (again.spans, "traces"),
            (again.logs, "logs"),
            (again.points, "metrics"),
        )
    ]
    runs = ingesting.all(
        """SELECT hex(trace_id), name, agent_name, status, started_ns, ended_ns, span_count,
          step_count, error_count, model_calls, tool_calls, tokens_input, tokens_output,
          cost_usd_nano, conversation_id, user_id, first_input, last_output, notes
        FROM run ORDER BY trace_id"""
    )
    calls = ingesting.all(
        """SELECT hex(span_id), counted, operation, call.tokens_input, hex(node.hash)
        FROM call JOIN span ON span.id = call.span
        LEFT JOIN message_prefix AS node ON node.id = input_prefix ORDER BY 1"""
    )
    return [*received, runs, calls]


@pytest.mark.covers("CO-17")
def test_an_export_makes_an_equal_store_again(ingesting: Ingesting, tmp_path: Path) -> None:
    for signal, body in fixture_requests():
        ingesting.send_bytes(signal, body)
    ingesting.send(traces([span(n, 1, attributes=_odd_values(n)) for n in range(1, 500)]))
    path = tmp_path / "export.jsonl"

    path.write_bytes(b"".join(export_store(ingesting.folder)))
    other = Ingesting(tmp_path / "other")
    imported = import_files(other.pipeline, [path])

    assert imported.problems == []
    assert everything(other) == everything(ingesting)
    assert verify_store(other.folder).findings == []
    other.close()


def _odd_values(number: int) -> dict[str, Any]:
    return {
        "nan": float("nan"),
        "inf": float("-inf"),
        "large": 2**63 - number,
        "text": f"line\u2028 \0 \U0001f600 {number}",
        "nested": {"a": [1, 2.0, None]},
        "empty": "",
    }


def test_an_export_is_read_slice_by_slice(ingesting: Ingesting) -> None:
    ingesting.send(traces([span(n, 1) for n in range(1, 500)]))

    lines = export_store(ingesting.folder)
    first = json.loads(next(lines))
    ingesting.send(traces([span(1000, trace_id=bytes([1]) * 16)]))
    rest = [json.loads(line) for line in lines]

    counts = [_count(line) for line in (first, *rest)]
    assert counts == [200, 200, 100]


def _count(line: dict[str, Any]) -> int:
    return sum(
        len(scope["spans"]) for each in line["resourceSpans"] for scope in each["scopeSpans"]
    )


def test_an_empty_store_exports_nothing(ingesting: Ingesting) -> None:
    assert list(export_store(ingesting.folder)) == []
