"""Status reports: bounded, readable, safe to show, and passed on when nobody reads them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_collector.reports import (
    MOST_LINES,
    Briefing,
    ReportSettings,
    pending,
    render,
    waiting_for,
    write_report,
)
from hansard_collector.trends.model import Trend
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.heartbeat import CycleLog, PhaseRecord
from hansard_store.reports.files import Ack, Report
from hansard_store.reports.state import read_state
from hansard_web.reports.page import with_links
from hansard_web.ui.markdown import to_html
from tests.store.maker import NOW, StoreMaker
from tests.store.memory_maker import MemoryMaker
from tests.store.task_maker import TaskMaker, task_maker

HOUR = 3_600 * 10**9
SECRET = "sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vW7" * 2
HOSTILE = "x` <script>alert(1)</script> [a](javascript:b)\n# Title\x1b[31m\u202e**bold**"


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[TaskMaker]:
    with task_maker(tmp_path / "data") as maker:
        yield maker


def text_of(maker: TaskMaker, **settings: object) -> str:
    given = ReportSettings(**settings)  # type: ignore[arg-type]
    return write_report(maker.store.folder, given, now_ns=maker.now_ns).text


@pytest.mark.covers("DI-23")
def test_a_report_says_what_failed_waits_was_corrected_decided_and_ran(
    failing: TaskMaker,
) -> None:
    failing.fail_often(7, "no such file: /tmp/a.txt")
    failing.detect()
    memory = MemoryMaker(failing.store.folder.path)
    memory.now_ns = NOW - HOUR
    claim = memory.write("all tests pass", memory_type="note", subject="tests")["memory"]
    memory.write(
        "3 of 5 tests failed", memory_type="correction", subject="tests", attribute="correction 1",
        writer="post_step_summarizer",
        metadata={"origin": "evaluation", "corrects": claim["memory_id"], "evidence": []},
    )  # fmt: skip
    memory.write("use SQLite", memory_type="decision", subject="storage")
    memory.close()
    log = CycleLog(failing.store.folder, clock=lambda: NOW - HOUR)
    log.begin("ab" * 16, origin="command")
    step = f"{'ab' * 16}-{'cd' * 8}"
    log.add(PhaseRecord("ab" * 16, "scan", step, "failed", NOW - HOUR, NOW - HOUR, "no net", {}))
    log.end("ab" * 16)
    log.close()

    lines = text_of(failing).splitlines()

    for line in (
        "1 review waits for a person; 7 calls failed in the last 24 hours.",
        "- scan: FAILED 60 min ago: no net",
        "- 3 records current; 3 written in the last 7 days, 0 in the 7 days before",
    ):
        assert line in lines
    whole = "\n".join(lines)
    assert "- review: The tool `run_tests` keeps failing in the same way, 7 times" in whole
    assert "- tool `run_tests`, 7 times, last " in whole
    assert ": `no such file: /tmp/a.txt` (step " in whole
    assert "correction of `tests`: `3 of 5 tests failed` (memory " in whole
    assert f"corrects memory {claim['memory_id'][-8:]}" in whole
    assert "- `storage`: `use SQLite` (memory " in whole


@pytest.mark.covers("DI-24", "TS-26")
def test_ten_thousand_errors_of_many_kinds_fill_no_more_than_sixty_lines(
    failing: TaskMaker,
) -> None:
    with failing.store.batch():
        for number in range(10_000):
            failing.fail(f"error {'abcdefghij'[number % 10] * 9}", tool=f"tool {number % 977}")
    failing.detect()

    begun = time.perf_counter()
    text = text_of(failing)

    assert text.count("\n") <= MOST_LINES == 60
    assert " more\n" in text
    assert "10,000 calls failed" in text
    assert time.perf_counter() - begun < 10


@pytest.mark.covers("DI-24")
def test_a_report_in_which_every_section_overflows_has_sixty_lines_at_most(
    failing: TaskMaker,
) -> None:
    with failing.store.batch():
        for number in range(300):
            failing.fail_often(5, f"error {number}", tool=f"tool {number}")
    failing.detect()
    memory = MemoryMaker(failing.store.folder.path)
    memory.now_ns = NOW - HOUR
    for number in range(30):
        for kind in ("correction", "decision"):
            memory.write("x " * 200, memory_type=kind, subject=f"{kind} {number}")
    memory.close()
    log = CycleLog(failing.store.folder, clock=lambda: NOW - HOUR)
    log.begin("ab" * 16, origin="command")
    for number in range(30):
        step = f"{'ab' * 16}-{number:016x}"
        log.add(PhaseRecord("ab" * 16, f"phase{number}", step, "done", NOW, NOW, "y " * 300, {}))
    log.close()
    state = read_state(failing.store.db, now_ns=failing.now_ns, window_ns=24 * HOUR)
    trends = [Trend("error_rate", "hour", "tool", f"t{n}", 0.1, 0.5, 100) for n in range(40)]
    unread = pending(
        [Report("REPORT-20260101T000000Z", 0, ())], ["ana", "kim"], escalate_ns=1, now_ns=NOW
    )
    briefing = Briefing(trends, ["ana", "kim"], HOUR, unread)

    text = render(state, briefing, clean=str)

    assert 50 < text.count("\n") <= MOST_LINES
    assert text.count(" more\n") >= 5
    assert max(map(len, text.splitlines())) <= 240


@pytest.mark.covers("DI-23")
def test_names_and_words_stay_text_in_a_terminal_and_on_a_page(failing: TaskMaker) -> None:
    failing.fail_often(5, HOSTILE, tool=HOSTILE)
    failing.detect()

    text = text_of(failing)
    page = str(to_html(with_links(text)))

    assert all(line.isprintable() for line in text.splitlines())
    assert "# Title" not in [line.strip() for line in text.splitlines()]
    assert "<script" not in page
    assert "<strong>" not in page
    assert "javascript:" not in page.replace("[a](javascript:b)", "")


@given(st.text(max_size=400), st.text(max_size=400))
def test_any_words_leave_every_line_one_line_and_one_code_span(name: str, says: str) -> None:
    from hansard_collector.reports import _Words

    for words in (_Words(str).code(name), _Words(str).code(says, 20)):
        assert words.isprintable()
        assert words.count("`") == 2
        assert words[0] == words[-1] == "`"
        assert len(words) > 2


@pytest.mark.covers("DI-23")
def test_a_secret_that_was_recorded_whole_is_in_no_report(tmp_path: Path) -> None:
    store = StoreMaker(tmp_path / "data")
    maker = TaskMaker(store, RetentionMode.FULL_PAYLOADS)
    maker.fail_often(6, f"bad key {SECRET} was refused by the server")

    text = text_of(maker)
    maker.close()
    store.close()

    assert SECRET[:20] not in text
    assert "6 times" in text


def test_an_empty_store_has_a_report_that_says_so(failing: TaskMaker) -> None:
    text = text_of(failing)

    assert "Nothing waits for a person; nothing failed in the last 24 hours." in text
    assert text.count("- none\n") >= 3


# ---- recipients


def report(*acks: str, written_ns: int = NOW) -> Report:
    told = tuple(Ack(one, NOW, "claimed") for one in acks)
    return Report("REPORT-20270115T080000Z", written_ns, told)


@pytest.mark.covers("DI-28")
def test_an_unread_report_passes_to_the_second_recipient_after_a_time() -> None:
    people = ["ana", "kim", "lee"]

    def waits(hours: float, *acks: str) -> str | None:
        now_ns = NOW + int(hours * HOUR)
        found = waiting_for(report(*acks), people, escalate_ns=12 * HOUR, now_ns=now_ns)
        return None if found is None else found.recipient

    assert [waits(0), waits(11.9), waits(12), waits(24), waits(2_400)] == [
        "ana", "ana", "kim", "lee", "lee",
    ]  # fmt: skip
    assert waits(1, "ana") is waits(30, "ana") is None
    assert waits(1, "kim") == "ana"  # it is not her turn yet
    assert waits(13, "kim") is None
    assert waits(13, "somebody") == "kim"


@pytest.mark.covers("DI-28")
def test_the_next_report_names_those_that_passed_on(failing: TaskMaker) -> None:
    people = ("ana", "kim")
    first = text_of(failing, recipients=people, escalate_ns=12 * HOUR)
    failing.now_ns += 13 * HOUR

    second = text_of(failing, recipients=people, escalate_ns=12 * HOUR)

    assert "For `ana` until 2027-01-15 20:00 UTC, then `kim`." in first
    assert "- 1 report passed to the next recipient, now `kim`; the oldest is of" in second


def test_without_recipients_anybody_reads() -> None:
    assert waiting_for(report(), [], escalate_ns=HOUR, now_ns=NOW) is not None
    assert waiting_for(report("x"), [], escalate_ns=HOUR, now_ns=NOW) is None
