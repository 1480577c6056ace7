"""Very many log records of one span: each transaction costs what it brings, and none is missed."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from hansard_collector import dialects
from hansard_collector.derivation.stored_span import read_step
from hansard_collector.dialects.engine.plan import READ_EVENTS
from hansard_store.steps.flags import SpanFlag
from tests.collector.ingesting import TRACE, Ingesting, log, logs, span, span_id, traces

DETAILS = "gen_ai.client.inference.operation.details"
MESSAGE = "gen_ai.user.message"
CALL = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini"}


def at(record: LogRecord, number: int) -> LogRecord:
    record.time_unix_nano += number
    return record


def lines(first: int, count: int) -> list[LogRecord]:
    return [at(log(1, text=f"line {number}"), number) for number in range(first, first + count)]


def messages(first: int, count: int) -> list[LogRecord]:
    return [
        at(log(1, event_name=MESSAGE, text=f"message {number}"), number)
        for number in range(first, first + count)
    ]


def details(number: int) -> LogRecord:
    said = '[{"role": "user", "parts": [{"type": "text", "content": "What is the weather?"}]}]'
    return at(log(1, event_name=DETAILS, attributes={"gen_ai.input.messages": said}), number)


class Derived:
    """Counts how often the rows of spans are derived again: each time their row is replaced."""

    def __init__(self, ingesting: Ingesting) -> None:
        self.times = 0
        ingesting.pipeline._store.writer().connection.set_update_hook(self._see)

    def _see(self, kind: int, database: str, table: str, row: int) -> None:
        self.times += table == "span"


@pytest.fixture
def ingesting(tmp_path: Path) -> Iterator[Ingesting]:
    made = Ingesting(tmp_path)
    made.send(traces([span(1, attributes=CALL)]))
    yield made
    made.close()


def said(ingesting: Ingesting) -> list[str]:
    row = ingesting.one("SELECT id FROM span WHERE span_id = ?", span_id(1))
    call = read_step(ingesting.db, row).normal.call
    assert call is not None
    return [message.text for message in call.input]


def has_logs(ingesting: Ingesting) -> bool:
    return bool(ingesting.one("SELECT flags FROM span") & SpanFlag.HAS_LOGS)


def test_lines_of_text_mark_their_span_once_and_derive_it_no_more(ingesting: Ingesting) -> None:
    derived = Derived(ingesting)

    for first in range(0, 4_000, 100):
        ingesting.send(logs(lines(first, 100)))

    assert derived.times == 1
    assert has_logs(ingesting)
    assert ingesting.one("SELECT count(*) FROM log_record") == 4_000


def test_events_that_no_dialect_reads_derive_nothing_either(ingesting: Ingesting) -> None:
    derived = Derived(ingesting)

    for number in range(20):
        ingesting.send(logs([at(log(1, event_name="app.progress"), number)]))

    assert derived.times == 1


def test_events_past_those_that_are_read_derive_nothing(ingesting: Ingesting) -> None:
    for first in range(0, 2_000, 500):
        ingesting.send(logs(messages(first, 500)))
    derived = Derived(ingesting)

    for first in range(2_000, 3_000, 100):
        ingesting.send(logs(messages(first, 100)))

    assert derived.times == 0
    assert len(said(ingesting)) == 2_000


def test_an_event_of_before_the_others_is_read_though_it_comes_after_them(
    ingesting: Ingesting,
) -> None:
    ingesting.send(logs(messages(1, 2_000)))

    early = at(log(1, event_name=MESSAGE, text="the first word"), -5)
    ingesting.send(logs([early]))

    assert said(ingesting)[0] == "the first word"


def test_an_event_is_read_behind_any_number_of_lines(ingesting: Ingesting) -> None:
    ingesting.send(logs(lines(0, 3_000)))

    ingesting.send(logs([details(4_000)]))

    assert said(ingesting) == ["What is the weather?"]


def test_a_span_that_comes_after_its_lines_and_events_has_both(tmp_path: Path) -> None:
    ingesting = Ingesting(tmp_path)
    ingesting.send(logs([*lines(0, 2_500), details(4_000)]))

    ingesting.send(traces([span(1, attributes=CALL), span(2)]))

    assert said(ingesting) == ["What is the weather?"]
    flags = dict(ingesting.all("SELECT span_id, flags & ? FROM span", int(SpanFlag.HAS_LOGS)))
    assert flags == {span_id(1): SpanFlag.HAS_LOGS, span_id(2): 0}
    ingesting.close()


def test_a_span_with_lines_alone_is_derived_the_same_in_either_order(tmp_path: Path) -> None:
    found = []
    for order in ((0, 1), (1, 0)):
        ingesting = Ingesting(tmp_path / str(order[0]))
        both = [traces([span(1, attributes=CALL)]), logs(lines(0, 10))]
        for index in order:
            ingesting.send(both[index])
        found.append(ingesting.all("SELECT trace_id, span_id, flags, role, summary FROM span"))
        ingesting.close()

    assert found[0] == found[1]
    assert found[0][0][0] == TRACE


def test_readers_ask_for_no_event_that_would_not_be_looked_at() -> None:
    asked = {name for path in _modules() for name in _asked_in(path)}

    assert {"tool", "tool.output", "gen_ai.choice", DETAILS, "exception"} <= asked
    assert asked <= READ_EVENTS | {f"claude_code.{name}" for name in READ_EVENTS}


def _modules() -> list[Path]:
    folder = Path(inspect.getfile(dialects)).parent
    return sorted(folder.rglob("*.py"))


def _asked_in(path: Path) -> Iterator[str]:
    """Yield the names that a module's readers give to `records` or `_logs`, if they are fixed."""
    parts = path.relative_to(Path(inspect.getfile(dialects)).parent).with_suffix("").parts
    module = import_module(".".join([dialects.__name__, *parts]).removesuffix(".__init__"))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called not in ("records", "_logs", "first_record"):
            continue
        for given in node.args[:1] if called == "first_record" else node.args:
            inner = given.value if isinstance(given, ast.Starred) else given
            if isinstance(inner, ast.Constant):
                yield inner.value
            elif isinstance(inner, ast.Tuple):
                yield from ast.literal_eval(inner)
            elif isinstance(inner, ast.Name) and inner.id.strip("_").isupper():
                named = getattr(module, inner.id)
                yield from [named] if isinstance(named, str) else named
