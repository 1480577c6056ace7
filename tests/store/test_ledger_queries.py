"""The ledger as it is shown: totals, senders, refusals."""

from __future__ import annotations

from hansard_store.ledger import (
    LedgerCount,
    RefusedItem,
    SenderKey,
    ledger_totals,
    list_refusals,
    list_senders,
)
from tests.store.maker import NOW, StoreMaker
from tests.store.plans import QueryPlans

BOT = SenderKey("bot", "grpc", "OTel-Python")
WEB = SenderKey("", "http", "curl/8")


def count(store: StoreMaker, sender: SenderKey, signal: str, **items: int) -> None:
    with store.batch() as batch:
        counts = batch.ledger.of(sender, signal, address="127.0.0.1:5")
        counts.update(items)


def refuse(store: StoreMaker, code: str) -> None:
    with store.batch() as batch:
        batch.ledger.refuse(RefusedItem(WEB, "::1", "traces", code, "no.", None, 10, store.now_ns))


def test_totals_hold_all_three_signals(store: StoreMaker) -> None:
    count(store, BOT, "traces", received=5, stored=4, duplicate=1, requests=1, bytes=100)
    count(store, BOT, "traces", received=2, stored=2, requests=1)
    count(store, WEB, "logs", received=1, rejected=1)

    totals = ledger_totals(store.db)

    assert totals["traces"] == LedgerCount(received=7, stored=6, duplicate=1, requests=2, bytes=100)
    assert totals["logs"] == LedgerCount(received=1, rejected=1)
    assert totals["metrics"] == LedgerCount()


def test_senders_come_with_their_counts_the_last_heard_first(store: StoreMaker) -> None:
    count(store, BOT, "traces", received=5, stored=5)
    store.now_ns += 1
    count(store, WEB, "logs", received=1, stored=1)

    web, bot = list_senders(store.db)

    assert (bot.service, bot.transport, bot.count.received) == ("bot", "grpc", 5)
    assert (web.user_agent, web.address, web.last_ns) == ("curl/8", "127.0.0.1:5", NOW + 1)


def test_the_last_refusals_are_shown_newest_first(store: StoreMaker) -> None:
    for code in ("one", "two", "three"):
        refuse(store, code)

    first = list_refusals(store.db, limit=2)

    assert [one.code for one in first] == ["three", "two"]
    assert (first[0].user_agent, first[0].items, first[0].message) == ("curl/8", None, "no.")


def test_refusals_scan_no_table(store: StoreMaker, plans: QueryPlans) -> None:
    refuse(store, "one")

    with plans.watch(store.db):
        list_refusals(store.db)

    assert plans.scans() == []
