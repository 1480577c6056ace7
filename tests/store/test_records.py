"""Records: what came in is what comes out, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_store.content.large_values import ContentCutter, ContentWriter
from hansard_store.database.connections import open_for_ingest
from hansard_store.errors import StoreCorruptError
from hansard_store.ingest.otlp_records import (
    large_values,
    pack_record,
    references_of,
    restore_log,
    restore_metric,
    restore_span,
)
from tests.store.empty import empty_store
from tests.store.maker import StoreMaker
from tests.strategies import log_records, metrics, spans

# One store for all examples: that contents of earlier ones are there is part of the test.
shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


class Records:
    """Packs and restores in one store, the way the pipeline does."""

    def __init__(self, path: Path) -> None:
        self.db = open_for_ingest(empty_store(path))
        self.cutter = ContentCutter()
        self.contents = ContentWriter(self.db)

    def pack(self, message: Span | LogRecord) -> bytes:
        trace_id = message.trace_id
        large = large_values(message, lambda key, text: self.cutter.cut(trace_id, key, text))
        packed = pack_record(message, large, self.contents, run=1)
        self.contents.write_held()
        return packed


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path)


@pytest.mark.covers("CO-11")
@shared
@given(st.lists(spans(), min_size=1, max_size=3))
def test_any_span_is_restored_byte_for_byte(records: Records, sent: list[Span]) -> None:
    before = [span.SerializeToString() for span in sent]

    packed = [records.pack(span) for span in sent]

    assert [restore_span(records.db, one).SerializeToString() for one in packed] == before
    assert [span.SerializeToString() for span in sent] == before


@shared
@given(log_records())
def test_any_log_record_is_restored_byte_for_byte(records: Records, sent: LogRecord) -> None:
    before = sent.SerializeToString()

    packed = records.pack(sent)

    assert restore_log(records.db, packed).SerializeToString() == before
    assert sent.SerializeToString() == before


@shared
@given(metrics())
def test_any_metric_is_restored_byte_for_byte(records: Records, sent: Metric) -> None:
    packed = pack_record(sent, (), records.contents, run=1)

    assert restore_metric(records.db, packed).SerializeToString() == sent.SerializeToString()


def test_fields_that_no_protocol_version_knows_yet_are_kept(records: Records) -> None:
    newer = Span(name="n").SerializeToString() + b"\xaa\x1f\x03new"  # field 501

    packed = records.pack(Span.FromString(newer))

    assert restore_span(records.db, packed).SerializeToString() == newer


def test_a_value_packed_for_the_second_time_takes_no_further_room(records: Records) -> None:
    span = Span(name="n")
    span.attributes.add(key="input.value").value.string_value = "word " * 1000

    first, second = records.pack(span), records.pack(span)

    assert first == second
    assert len(first) < 200
    assert records.db.execute("SELECT count(*) FROM content").get == 1


def test_bytes_and_texts_of_equal_content_are_told_apart(records: Records) -> None:
    span = Span(name="n")
    span.attributes.add(key="t").value.string_value = "x" * 2000
    span.attributes.add(key="b").value.bytes_value = b"x" * 2000

    back = restore_span(records.db, records.pack(span))

    assert [pair.value.WhichOneof("value") for pair in back.attributes] == [
        "string_value",
        "bytes_value",
    ]


def test_a_record_names_everything_it_needs(records: Records) -> None:
    span = Span(name="n", trace_id=b"t" * 16)
    span.attributes.add(key="text").value.string_value = "x" * 2000
    span.attributes.add(key="list").value.string_value = "[" + ", ".join(["1234567890"] * 99) + "]"
    span.attributes.add(key="tail").value.string_value = (
        '{"a": [1, 2, "' + "y" * 1500 + '"], "rest": "' + "z" * 500 + '"}'
    )

    references = references_of(records.pack(span))

    assert [reference.kind for reference in references] == [0, 1, 2]
    assert references[1].tail == b"]"
    assert references[2].tail_content


@pytest.mark.parametrize("damage", [b"", b"\x09", b"\x00\xff", b"\x00\x01\x02", b"\x01zstd?"])
def test_a_damaged_record_is_told_and_never_guessed(store: StoreMaker, damage: bytes) -> None:
    with pytest.raises(StoreCorruptError):
        restore_span(store.db, damage)


def test_a_record_whose_content_is_gone_is_corrupt(records: Records) -> None:
    span = Span(name="n")
    span.attributes.add(key="k").value.CopyFrom(AnyValue(string_value="x" * 2000))
    packed = records.pack(span)
    records.db.execute("DELETE FROM content")

    with pytest.raises(StoreCorruptError, match="content 1"):
        restore_span(records.db, packed)
