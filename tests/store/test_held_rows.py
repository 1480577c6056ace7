"""Rows that wait for the end of their transaction: the same as if each were written at once."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_compiler.calls import Message
from hansard_store.content.large_values import ContentCutter
from hansard_store.database.compression import pack, pack_all
from hansard_store.ingest.derived_rows import SpanProjection, TextProjection
from hansard_store.ingest.otlp_records import large_values, restore_span
from hansard_store.ingest.span_input import ReceivedSpan
from hansard_store.ingest.writer import IngestWriter, WriteBatch
from hansard_store.verification.integrity import verify_store
from tests.store.maker import NOW, StoreMaker, call, message, span_id, trace_id

TABLES = ("content", "content_list", "text", "message_prefix", "span_record", "text_use", "call")
WORDS = ("short", "long " * 120, "longer " * 300, "ü" * 600, "")


@dataclass(frozen=True)
class ReportedSpan:
    """What one span says: how far it is in a conversation, and a tool's answer."""

    run: str
    talk: tuple[Message, ...]
    answer: str


said = st.builds(message, st.sampled_from(("user", "assistant")), st.sampled_from(WORDS))
told = st.builds(
    ReportedSpan,
    st.sampled_from(("one", "two")),
    st.lists(said, max_size=4).map(tuple),
    st.sampled_from(WORDS),
)


class Writing:
    """Spans with records, contents and texts, as the pipeline adds them."""

    def __init__(self, store: StoreMaker, writer: IngestWriter | None = None) -> None:
        self._store = store
        self._writer = writer or store.writer
        self._cutter = ContentCutter()
        self.sent: list[Span] = []

    def write(self, some: Sequence[ReportedSpan]) -> None:
        """Add some spans in one transaction."""
        with self._writer.batch(now_ns=NOW) as batch:
            self.add(batch, some)

    def add(self, batch: WriteBatch, some: Sequence[ReportedSpan]) -> None:
        resource, scope = self._store._envelopes("svc")
        made = [self._made(one, resource, scope) for one in some]
        batch.expect([value for span, _ in made for value in span.large], [p for _, p in made])
        for span, projection in made:
            batch.spans.add(span, projection)

    def _made(
        self, one: ReportedSpan, resource: int, scope: int
    ) -> tuple[ReceivedSpan, SpanProjection]:
        name = f"span {len(self.sent)}"
        trace = trace_id(one.run)
        span = Span(trace_id=trace, span_id=span_id(name), name=name)
        talk = [{"role": said.role, "content": said.text} for said in one.talk]
        span.attributes.add(key="messages").value.string_value = json.dumps(talk)
        span.attributes.add(key="gen_ai.prompt.0.content").value.string_value = one.answer
        self.sent.append(span)
        received = ReceivedSpan(
            trace_id=trace,
            span_id=span.span_id,
            side=0,
            parent_span_id=None,
            name=name,
            kind=1,
            start_ns=NOW,
            end_ns=NOW + 1,
            sort_ns=NOW,
            status=0,
            flags=0,
            mac=span.span_id,
            received_ns=NOW,
            resource=resource,
            scope=scope,
            attribute_count=2,
            message=span,
            large=large_values(span, lambda key, text: self._cutter.cut(trace, key, text)),
            notes=("a note",) if one.answer == "short" else (),
        )
        texts = (TextProjection("span_name", name), TextProjection("tool_result", one.answer))
        projection = SpanProjection("llm", "test", call=call(input=one.talk), texts=texts)
        return received, projection


def rows_of(store: StoreMaker) -> dict[str, list[Any]]:
    return {
        table: sorted(store.db.execute(f"SELECT * FROM {table}").fetchall()) for table in TABLES
    }


def findings(store: StoreMaker) -> list[Any]:
    return list(verify_store(store.folder).findings)


def stored(spans: Sequence[ReportedSpan], *, at_once: int) -> dict[str, list[Any]]:
    with tempfile.TemporaryDirectory() as path:
        store = StoreMaker(Path(path))
        writing = Writing(store)
        for start in range(0, len(spans), at_once):
            writing.write(spans[start : start + at_once])
        for number, sent in enumerate(writing.sent, start=1):
            record = store.db.execute("SELECT record FROM span_record WHERE span = ?", (number,))
            assert restore_span(store.db, bytes(record.get)) == sent
        assert findings(store) == []
        found = rows_of(store)
        store.close()
        return found


@settings(max_examples=25)
@given(st.lists(told, min_size=1, max_size=8))
def test_spans_stored_at_once_have_the_rows_of_spans_stored_one_by_one(
    spans: list[ReportedSpan],
) -> None:
    assert stored(spans, at_once=len(spans)) == stored(spans, at_once=1)


def test_a_record_can_be_replaced_in_the_transaction_that_added_it(store: StoreMaker) -> None:
    with store.batch():
        store.span("a", duration_s=1)
        number = store.span("a", duration_s=2, attributes={"more": "told"})

    record = store.db.execute("SELECT record FROM span_record WHERE span = ?", (number,)).get
    assert [pair.key for pair in restore_span(store.db, bytes(record)).attributes] == ["more"]
    assert store.db.execute("SELECT count(*) FROM span_duplicate").get == 1


def test_two_writers_in_turn_give_no_id_twice(store: StoreMaker) -> None:
    talk = (message("user", WORDS[1]), message("assistant", WORDS[2]))
    first = Writing(store)
    second = Writing(store, IngestWriter(store.ingest, derived_version=1))
    second.sent = first.sent

    for number in range(4):
        turn = ReportedSpan("one", (*talk, message("user", f"{number} {WORDS[1]}")), str(number))
        (first, second)[number % 2].write([turn])

    assert findings(store) == []
    assert store.db.execute("SELECT count(*) FROM text WHERE field = 'message'").get == 6


def test_what_waits_is_gone_after_a_rollback(store: StoreMaker) -> None:
    writing = Writing(store)
    lost = ReportedSpan("one", (message("user", WORDS[2]),), WORDS[1])

    def fail() -> None:
        with store.writer.batch(now_ns=NOW) as batch:
            writing.add(batch, [lost])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    writing.write([lost])

    assert store.db.execute("SELECT min(id), max(id) FROM content").fetchone() == (1, 3)
    assert findings(store) == []


@given(st.lists(st.binary(max_size=400) | st.just(b"word " * 200)))
def test_values_packed_together_are_packed_as_each_alone(values: list[bytes]) -> None:
    assert pack_all(values) == [pack(value) for value in values]
