"""Receipts that are asked for are those that a scan of all receipts finds, whatever was sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hansard_compiler.canonical import canonical_bytes
from hansard_store.compilations.receipts import SOURCE_TYPES, ReceiptFilter, list_receipts
from hansard_store.database.connections import open_for_maintenance
from hansard_store.search.attributes import tokens_of
from tests.collector.compile_maker import send_payloads, spans_of
from tests.collector.ingesting import Ingesting
from tests.collector.payload_maker import ref_of

# Few, so that filters meet; and each odd in its own way: longer than what is kept of it, with what
# separates rules or sources, with blanks at its ends, not plain ASCII.
_NAMES = ("budget", "a,b", " padded ", "ünï\u2028", "'; --", '"q" OR *', "n" * 128, "n" * 140, "\0")
_IDS = (*_NAMES, "i" * 512, "i" * 600)
_PLACES = ("a.md", "docs/a b.md", " a.md", "a.md ", "file a.md", "p" * 507, "p" * 508, "p" * 700)
_TYPES = ("file", "memory", "hologram", "t" * 130, "")
_RULES = ("no-keys", "pii", " blank", "", "r" * 128, "r" * 300)
PLAIN: Mapping[str, Any] = {
    "item_id": "first", "kind": "file", "decision": "exclude", "pass_name": "budget",
    "reason_code": "over_budget", "source": "file a.md", "rule_ids": [],
}  # fmt: skip
_FIELDS = {
    "item": "item_id",
    "kind": "kind",
    "decision": "decision",
    "pass_name": "pass",
    "reason": "reason",
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ingesting]:
    ingesting = Ingesting(tmp_path_factory.mktemp("store"))
    ingesting.send(told("first", [PLAIN], held=1)[0])
    yield ingesting
    ingesting.close()


names = st.sampled_from(_NAMES)
sources = st.builds(
    lambda kind, place: f"{kind} {place}" if place else kind,
    st.sampled_from(_TYPES),
    st.sampled_from(("", *_PLACES)),
)
rows = st.fixed_dictionaries(
    {
        "item_id": st.sampled_from(_IDS),
        "kind": names,
        "decision": st.sampled_from(("include", "exclude", *_NAMES)),
        "pass_name": names,
        "reason_code": names,
        "source": sources,
        "rule_ids": st.lists(st.sampled_from(_RULES), max_size=4),
    }
)
_COLUMNS = {
    "ids": "item_id", "kinds": "kind", "decisions": "decision", "passes": "pass_name",
    "reasons": "reason_code", "sources": "source",
}  # fmt: skip


def told(
    made_id: str, receipts: Sequence[Mapping[str, Any]], *, held: int
) -> tuple[Any, list[bytes]]:
    """Return the span of a compile that holds its first receipts, and what it stored."""
    shown = receipts[:held]
    result = canonical_bytes({"id": made_id, "decisions": receipts})
    attributes = {
        "hansard.compilation.id": made_id,
        "hansard.compilation.result_ref": ref_of(result),
        "hansard.item.total": len(receipts),
        **{f"hansard.item.{name}": [one[key] for one in shown] for name, key in _COLUMNS.items()},
        "hansard.item.rule_ids": [",".join(one["rule_ids"]) for one in shown],
    }
    return spans_of(attributes).request, [result]


def scanned(ingesting: Ingesting) -> list[dict[str, Any]]:
    sql = """
    SELECT span, ordinal, item_id, receipt.kind, decision, pass, reason, source_type, source,
      rule_ids, lower(hex(trace_id))
    FROM receipt JOIN span ON span.id = receipt.span ORDER BY span DESC, ordinal
    """
    names = ("span", "ordinal", "item_id", "kind", "decision", "pass", "reason", "source_type",
             "source", "rule_ids", "run")  # fmt: skip
    return [dict(zip(names, row, strict=True)) for row in ingesting.all(sql)]


def meets(row: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    return all(_has(row, name, value) for name, value in wanted.items())


def _has(row: Mapping[str, Any], name: str, value: str) -> bool:
    kind, place = row["source_type"], row["source"]
    if name == "rule":
        return value in (row["rule_ids"] or "").split(",")
    if name == "run":
        return bool(row["run"] == value)
    if name != "source":
        return bool(row[_FIELDS[name]] == value)
    first, _, rest = value.partition(" ")
    if first in SOURCE_TYPES:
        return (kind, place) == (first, rest or place)
    return value in (kind, place, f"{kind} {place}")


def asked(ingesting: Ingesting, wanted: Mapping[str, str], *, limit: int) -> list[tuple[int, int]]:
    """Return all pages."""
    found: list[tuple[int, int]] = []
    cursor = None
    while True:
        page = list_receipts(ingesting.db, ReceiptFilter(**wanted), limit=limit, cursor=cursor)  # type: ignore[arg-type]  # texts
        found += [(one.receipt.span, one.receipt.ordinal) for one in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_what_is_asked_for_is_what_a_scan_finds(shared: Ingesting, data: st.DataObject) -> None:
    receipts = data.draw(st.lists(rows, min_size=1, max_size=6))
    held = data.draw(st.integers(0, len(receipts)))
    count = shared.one("SELECT count(*) FROM compilation")
    request, payloads = told(f"{count:032x}", receipts, held=held)
    order = data.draw(st.sampled_from(("payload first", "span first", "never")))
    if order == "payload first":
        send_payloads(shared, payloads)
    shared.send(request)
    if order == "span first":
        send_payloads(shared, payloads)

    everything = scanned(shared)
    row = data.draw(st.sampled_from(everything))
    named = {name: value for name, value in _filters(row).items() if value}
    several = data.draw(st.sets(st.sampled_from(sorted(named)), min_size=2))
    for names in (set(), *({name} for name in named), several):
        wanted = {name: named[name] for name in names}
        expected = [(one["span"], one["ordinal"]) for one in everything if meets(one, wanted)]
        assert asked(shared, wanted, limit=data.draw(st.sampled_from((2, 7, 500)))) == expected


def test_a_value_is_asked_for_as_it_was_sent_or_as_it_was_kept(shared: Ingesting) -> None:
    long = {"item_id": "x" * 600, "kind": "k" * 200, "decision": "exclude", "pass_name": "budget",
            "reason_code": "over_budget", "source": f"file {'y' * 700}",
            "rule_ids": [f"rule-{at:04}" for at in range(500)]}  # fmt: skip
    request, _ = told("long", [long], held=1)
    shared.send(request)

    for item in ("x" * 600, "x" * 512):
        for kind in ("k" * 200, "k" * 128):
            for source in (f"file {'y' * 700}", f"file {'y' * 507}"):
                wanted = {"item": item, "kind": kind, "source": source}
                assert len(asked(shared, wanted, limit=2)) == 1
    kept = 4_096 // len("rule-0000,")
    assert len(asked(shared, {"item": "x" * 600, "rule": f"rule-{kept - 1:04}"}, limit=2)) == 1
    assert asked(shared, {"item": "x" * 600, "rule": f"rule-{kept:04}"}, limit=2) == []
    notes = shared.one("SELECT notes FROM compilation WHERE id = 'long'")
    assert "hansard.item.kinds: 1 values too long, cut" in notes
    assert "hansard.item.rule_ids: 1 values too long, cut" in notes


@pytest.mark.parametrize("order", ["payload first", "span first"])
def test_what_only_the_result_of_a_large_compile_says_is_found(tmp_path: Path, order: str) -> None:
    last: Mapping[str, Any] = {"item_id": f"last {order}", "kind": "later", "decision": "set aside",
            "pass_name": "thirteenth", "reason_code": "too late", "source": "hologram deck 4",
            "rule_ids": ["only-last", "pii"]}  # fmt: skip
    request, payloads = told(f"large {order}", [PLAIN] * 4_010 + [last], held=4_000)
    ingesting = Ingesting(tmp_path)
    if order == "payload first":
        send_payloads(ingesting, payloads)
    ingesting.send(request)
    if order == "span first":
        assert asked(ingesting, {"item": f"last {order}"}, limit=2) == []
        send_payloads(ingesting, payloads)

    span = ingesting.one("SELECT span FROM compilation WHERE id = ?", f"large {order}")
    sent = {name: str(last[_SENT.get(key, key)]) for name, key in _FIELDS.items()}
    for name, value in {**sent, "rule": "only-last", "source": last["source"]}.items():
        wanted = {"item": sent["item"], name: value}
        assert asked(ingesting, wanted, limit=2) == [(span, 4_010)]
    ingesting.close()


_SENT = {"pass": "pass_name", "reason": "reason_code"}


def _filters(row: Mapping[str, Any]) -> dict[str, str]:
    """Return all that one receipt can be asked for by."""
    places = [part for part in (row["source_type"], row["source"]) if part]
    return {
        **{name: row[column] for name, column in _FIELDS.items()},
        "rule": (row["rule_ids"] or "").split(",")[-1],
        "source": " ".join(places) if row["ordinal"] % 2 else (places or [""])[-1],
        "run": row["run"],
    }


def test_a_file_is_found_by_an_index_that_knows_no_types(tmp_path: Path) -> None:
    ingesting = Ingesting(tmp_path)
    ingesting.send(told("of before", [PLAIN], held=1)[0])
    connection = open_for_maintenance(ingesting.folder)
    # As a store is between its upgrade and the end of its deriving again.
    kept = tokens_of({"hansard.item.sources": [PLAIN["source"]]})
    connection.execute("UPDATE attribute_fts SET tokens = ?", (kept,))
    connection.close()

    assert len(asked(ingesting, {"source": "file a.md"}, limit=2)) == 1
    assert len(asked(ingesting, {"source": "a.md"}, limit=2)) == 1
    ingesting.close()
