"""What steps tell, read many at a time: the same as one by one, whatever their spans share."""

from __future__ import annotations

from typing import Any

import apsw
import pytest

from hansard_collector.derivation.stored_span import read_step
from hansard_web.diff.step_facts import Understanding, digests_of
from tests.collector.ingesting import (
    TRACE,
    Ingesting,
    fixture_requests,
    log,
    logs,
    span,
    traces,
)

_OTHER = bytes(range(16, 32))
_TOOL: dict[str, Any] = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "read_file",
    "gen_ai.tool.call.arguments": '{"path": "a.py"}',
    "gen_ai.tool.call.result": "text",
}


def numbers(store: Ingesting, trace_id: bytes) -> list[int]:
    """Return the numbers of a trace's spans."""
    return [
        row[0] for row in store.all("SELECT id FROM span WHERE trace_id = ? ORDER BY id", trace_id)
    ]


def test_every_recorded_span_tells_the_same_in_a_crowd_as_alone(ingesting: Ingesting) -> None:
    for signal, body in fixture_requests():
        ingesting.send_bytes(signal, body)
    understanding = Understanding(ingesting.db)

    for (trace_id,) in ingesting.all("SELECT DISTINCT trace_id FROM span"):
        spans = numbers(ingesting, trace_id)
        alone = {one: digests_of(read_step(ingesting.db, one)) for one in spans}
        assert understanding.of(trace_id, spans) == alone


@pytest.mark.parametrize(
    "differing",
    [{"gen_ai.tool.call.result": "other"}, {"gen_ai.tool.call.arguments": '{"path": "b.py"}'}],
)
def test_steps_of_two_runs_are_told_apart_by_what_they_say_alone(
    ingesting: Ingesting, differing: dict[str, Any]
) -> None:
    ingesting.send(traces([span(1), span(2, 1, attributes=_TOOL)]))
    again = [span(3, trace_id=_OTHER), span(4, 3, trace_id=_OTHER, attributes=_TOOL)]
    changed = span(5, 3, trace_id=_OTHER, attributes=_TOOL | differing)
    ingesting.send(traces([*again, changed]))
    understanding = Understanding(ingesting.db)

    _, first = understanding.of(TRACE, numbers(ingesting, TRACE)).values()
    _, same, other = understanding.of(_OTHER, numbers(ingesting, _OTHER)).values()

    assert same == first
    assert other != first


def test_what_a_log_record_says_of_a_span_is_its_own(ingesting: Ingesting) -> None:
    bare = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "run"}
    ingesting.send(traces([span(1, attributes=bare), span(2, attributes=bare)]))
    said = {"gen_ai.tool.call.result": "42"}
    ingesting.send(logs([log(2, event_name="gen_ai.tool.result", attributes=said)]))

    spans = numbers(ingesting, TRACE)
    alone = {one: digests_of(read_step(ingesting.db, one)) for one in spans}
    assert Understanding(ingesting.db).of(TRACE, spans) == alone


def test_a_step_that_lacks_a_part_is_left_out_and_the_others_are_read(
    ingesting: Ingesting,
) -> None:
    large = _TOOL | {"gen_ai.tool.call.result": "word " * 20_000}
    ingesting.send(traces([span(1, attributes=_TOOL), span(2, attributes=large)]))
    spans = numbers(ingesting, TRACE)
    assert set(Understanding(ingesting.db).of(TRACE, spans)) == set(spans)

    damaged = apsw.Connection(str(ingesting.folder.database))
    damaged.execute("DELETE FROM content")
    damaged.close()

    assert list(Understanding(ingesting.db).of(TRACE, spans)) == spans[:1]
