"""The ledger over a stretch of time."""

from __future__ import annotations

from hansard_store.ledger import QUARTER_NS, SenderKey, ledger_lines
from tests.store.maker import NOW, StoreMaker
from tests.store.plans import QueryPlans

BOT = SenderKey("bot", "grpc", "OTel-Python")
WEB = SenderKey("", "http", "curl/8")


def count(store: StoreMaker, sender: SenderKey, signal: str, **items: int) -> None:
    with store.batch() as batch:
        counts = batch.ledger.of(sender, signal, address="127.0.0.1:5")
        counts.update(items)


def test_a_line_is_one_sender_and_signal_by_quarter(store: StoreMaker) -> None:
    count(store, BOT, "traces", received=5, stored=4, rejected=1)
    count(store, BOT, "logs", received=1, stored=1)
    store.now_ns += 2 * QUARTER_NS
    count(store, BOT, "traces", received=7, stored=7)
    count(store, WEB, "traces", refused=1)

    lines = ledger_lines(store.db, since_ns=NOW, until_ns=store.now_ns)

    assert [(line.service, line.signal) for line in lines] == [
        ("bot", "traces"),
        ("bot", "logs"),
        ("", "traces"),
    ]
    assert lines[0].received == (5, 0, 7)
    assert lines[0].troubled == (0,)
    assert (lines[0].count.received, lines[0].count.stored) == (12, 11)
    assert (lines[2].troubled, lines[2].count.refused) == ((2,), 1)


def test_quarters_before_the_period_are_left_out(store: StoreMaker) -> None:
    count(store, BOT, "traces", received=5, stored=5)
    store.now_ns += 4 * QUARTER_NS
    count(store, BOT, "traces", received=1, stored=1)

    lines = ledger_lines(store.db, since_ns=NOW + QUARTER_NS, until_ns=store.now_ns)

    assert [line.count.received for line in lines] == [1]
    assert lines[0].received == (0, 0, 0, 1)


def test_counts_after_the_end_of_the_period_fall_into_its_last_quarter(store: StoreMaker) -> None:
    store.now_ns += 3 * QUARTER_NS
    count(store, BOT, "traces", received=2, stored=2)

    lines = ledger_lines(store.db, since_ns=NOW, until_ns=NOW + QUARTER_NS)

    assert lines[0].received == (0, 2)


def test_a_period_is_searched_and_not_scanned(store: StoreMaker, plans: QueryPlans) -> None:
    with plans.watch(store.db):
        ledger_lines(store.db, since_ns=NOW, until_ns=NOW)

    assert plans.scans() == []
