"""The ledger: sums by sender and signal, and the last refusals."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hansard_store.ledger import QUARTER_NS, RefusedItem, SenderKey
from tests.store.maker import StoreMaker

SENDER = SenderKey("shop", "http", "exporter/1.0")
OUTCOMES = ("stored", "duplicate", "rejected", "opened", "deleted")


def refusal(message: str) -> RefusedItem:
    return RefusedItem(
        sender=SENDER,
        address="127.0.0.1:9",
        signal="traces",
        code="malformed",
        message=message,
        items=None,
        size_bytes=3,
        time_ns=1,
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.lists(st.lists(st.sampled_from(OUTCOMES), max_size=5), max_size=4))
def test_what_was_received_is_the_sum_of_what_became_of_it(
    store: StoreMaker, batches: list[list[str]]
) -> None:
    before = sums(store)
    for outcomes in batches:
        with store.batch() as batch:
            for outcome in outcomes:
                count = batch.ledger.of(SENDER, "traces", address="127.0.0.1:9")
                count.update(["received", outcome])

    after = sums(store)

    assert after[0] - before[0] == sum(map(len, batches))
    assert after[0] == sum(after[1:])


def sums(store: StoreMaker) -> tuple[int, ...]:
    columns = ", ".join(f"coalesce(sum({name}), 0)" for name in ("received", *OUTCOMES))
    row: tuple[int, ...] = store.db.execute(f"SELECT {columns} FROM ledger").get
    return row


def test_counts_of_one_quarter_share_a_row_and_of_two_do_not(store: StoreMaker) -> None:
    for later_ns in (0, 1, QUARTER_NS):
        store.now_ns += later_ns
        with store.batch() as batch:
            batch.ledger.of(SENDER, "traces", address="a").update(received=1)

    assert [row[0] for row in store.db.execute("SELECT received FROM ledger")] == [2, 1]


def test_a_rolled_back_transaction_counts_nothing(store: StoreMaker) -> None:
    try:
        with store.batch() as batch:
            batch.ledger.of(SENDER, "traces", address="a").update(received=1)
            raise ZeroDivisionError
    except ZeroDivisionError:
        assert store.db.execute("SELECT count(*) FROM ledger").get == 0


def test_a_sender_keeps_the_address_and_dialect_it_had_last(store: StoreMaker) -> None:
    for address, dialect in (("a:1", "gen_ai"), ("b:2", "")):
        with store.batch() as batch:
            batch.ledger.of(SENDER, "traces", address=address)
            if dialect:
                batch.ledger.dialects[SENDER] = dialect

    rows = store.db.execute("SELECT service, address, dialect FROM sender").fetchall()
    assert rows == [("shop", "b:2", "gen_ai")]


def test_only_the_last_five_hundred_refusals_are_kept(store: StoreMaker) -> None:
    with store.batch() as batch:
        for number in range(503):
            batch.ledger.refuse(refusal(str(number)))

    kept = [row[0] for row in store.db.execute("SELECT message FROM refusal ORDER BY id")]
    assert (len(kept), kept[0], kept[-1]) == (500, "3", "502")
