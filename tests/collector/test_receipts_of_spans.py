"""Compile spans become compilations and receipts, whatever they hold and in whichever order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_collector.derivation import compilations
from hansard_collector.derivation.compilations import MOST_RECEIPTS
from hansard_collector.derivation.rebuild import rebuild
from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.reasons import ReasonCode
from hansard_store.compilations.queries import compilation_of_span, compilations_with_id
from hansard_store.compilations.receipts import StoredReceipt, receipts_of
from hansard_store.database.connections import open_for_maintenance
from hansard_store.maintenance.deletion import delete_run
from hansard_store.maintenance.garbage import collect_garbage
from hansard_store.verification.integrity import verify_store
from tests.collector.compile_maker import Told, compiled_files, send_payloads, spans_of, tell
from tests.collector.ingesting import Ingesting, is_rebuild_due
from tests.collector.payload_maker import SECRET, digest_of, ref_of
from tests.collector.test_rebuild import derived
from tests.compiler.compiling import compiled, item, ports
from tests.compiler.crowd import crowd

WHOLE = 4_020  # over what a span holds


# What looks like a number, like several, or like none.
_SCORES = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.text(alphabet='0123456789.,-+e[]{}":_ ', max_size=6),
)


@given(st.lists(_SCORES, max_size=8))
def test_scores_that_are_read_at_once_are_those_read_one_by_one(sent: list[str]) -> None:
    at_once = compilations._scores(sent)

    assert at_once.column == [compilations._score_nano(one) for one in sent]


@pytest.fixture(scope="module")
def large() -> CompileResult:
    """A compile of more items than a span has receipts for."""
    return compiled([item(f"doc-{at}", content=f"word {at}") for at in range(WHOLE)], budget=5_000)


def stored(ingesting: Ingesting) -> list[StoredReceipt]:
    """Return the receipts of the one compile that is stored."""
    return receipts_of(ingesting.db, ingesting.one("SELECT span FROM compilation"))


def told_by(result: CompileResult) -> list[Any]:
    """Return what a compile says of each item, in the terms of the store."""
    return [
        (
            one.item_id, one.kind, one.decision, one.pass_name, one.reason.value,
            one.source, one.section, one.original_tokens, one.final_tokens,
            None if one.score is None else one.score.total, one.missed_by_tokens,
            one.missed_by_score, one.related_item_id, one.rule_ids, one.original_ref, one.final_ref,
        )
        for one in result.receipts
    ]  # fmt: skip


def kept_of(receipts: list[StoredReceipt]) -> list[Any]:
    return [
        (
            one.item_id, one.kind, one.decision, one.pass_name, one.reason,
            " ".join(part for part in (one.source_type, one.source) if part), one.section,
            one.tokens_before, one.tokens_after, one.score_nano, one.missed_tokens,
            one.missed_score_nano, one.related, one.rules, _ref(one.original), _ref(one.final),
        )
        for one in receipts
    ]  # fmt: skip


def _ref(digest: bytes | None) -> str | None:
    return None if digest is None else f"sha256:{digest.hex()}"


@pytest.mark.covers("RC-06")
def test_every_receipt_of_a_compile_is_stored_as_it_was_made(ingesting: Ingesting) -> None:
    long = "cents are rounded half up, and what is left goes to the last line. " * 120
    result = compiled(
        [
            item("long", "retrieval_doc", long),
            item("again", "retrieval_doc", long, trust_score=0.1),
            item("key", "file", f"KEY={SECRET}", importance_score=1.0, tags=["pinned"]),
            item("old", "memory", created_at="2020-01-01T00:00:00Z", ttl_seconds=5),
            item("ask", "user_msg", "How are cents rounded?"),
        ],
        budget=600,
    )
    assert {one.decision for one in result.receipts} == {"include", "exclude", "compress", "redact"}
    tell(ingesting, Told(result))

    assert kept_of(stored(ingesting)) == told_by(result)


def test_a_compilation_has_the_numbers_of_its_compile(ingesting: Ingesting) -> None:
    told = Told(compiled_files(response_reserve=100))
    sent = tell(ingesting, told)

    [found] = compilations_with_id(ingesting.db, told.result.id)
    allocation = told.result.token_allocation
    row = found.row
    assert (found.step_id, found.run_id, found.run_name) == (
        sent.step_id, sent.run_id, "invoke_agent mender",
    )  # fmt: skip
    assert (row.budget_tokens, row.budget_reserve, row.budget_used) == (
        allocation["budget"], 100, allocation["used"],
    )  # fmt: skip
    assert (row.hash, row.counter) == (told.result.compile_hash, "quarter/1")
    assert (row.item_total, row.receipt_count) == (13, 13)
    decisions = [one.decision for one in told.result.receipts]
    assert (row.included, row.excluded) == (decisions.count("include"), decisions.count("exclude"))
    assert row.excluded > 0
    assert row.notes is None
    assert row.schema_version is None
    assert ingesting.one("SELECT has_receipts FROM run") == 1


def test_a_run_without_a_compile_has_no_receipts(ingesting: Ingesting) -> None:
    ingesting.send(spans_of().request)

    assert ingesting.one("SELECT has_receipts FROM run") == 0
    assert ingesting.one("SELECT count(*) FROM compilation") == 0


# ---- more than a span holds


@pytest.mark.parametrize("first", ["payloads", "span"])
def test_a_compile_of_more_than_a_span_holds_is_whole(
    ingesting: Ingesting, large: CompileResult, first: str
) -> None:
    told = Told(large)
    sent = spans_of(told.attributes())
    if first == "payloads":
        send_payloads(ingesting, [told.result_bytes])
    ingesting.send(sent.request)
    if first == "span":
        assert ingesting.one("SELECT receipt_count, item_total FROM compilation") == (4_000, WHOLE)
        send_payloads(ingesting, [told.result_bytes])

    assert ingesting.one("SELECT receipt_count, item_total FROM compilation") == (WHOLE, WHOLE)
    assert kept_of(stored(ingesting)) == told_by(large)
    assert verify_store(ingesting.folder).findings == []


def test_what_only_the_result_names_is_kept_by_gc(
    ingesting: Ingesting, large: CompileResult
) -> None:
    told = Told(large)
    last = large.receipts[-1]
    tell(ingesting, told)

    named = ingesting.one(
        "SELECT count(*) FROM payload_use WHERE payload = ?",
        bytes.fromhex(last.original_ref.removeprefix("sha256:")),
    )
    assert named == 1


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\xff not JSON", "no JSON"),
        (b"[]", "holds no decisions"),
        (b'{"decisions": 7}', "holds no decisions"),
        (b'{"id": "another", "decisions": []}', "of another compilation"),
    ],
)
def test_a_result_that_is_none_leaves_what_the_span_tells(
    ingesting: Ingesting, large: CompileResult, data: bytes, why: str
) -> None:
    told = Told(large, {"hansard.compilation.result_ref": ref_of(data)})
    send_payloads(ingesting, [data])
    ingesting.send(spans_of(told.attributes()).request)

    count, notes = ingesting.one("SELECT receipt_count, notes FROM compilation")
    assert count == 4_000
    assert why in notes
    assert why in ingesting.one("SELECT notes FROM run")


def test_nothing_of_a_result_with_odd_decisions_fails(
    ingesting: Ingesting, large: CompileResult
) -> None:
    odd = [None, 7, {}, {"item_id": 5}, {"item_id": "a", "decision": "exclude"},
           {"item_id": "b", "decision": "exclude", "reason_code": "over_budget",
            "original_tokens": 1 << 70, "score_breakdown": {"score": 1 << 80}, "rule_ids": [1, "r"],
            "source": "file x", "original_ref": "sha256:zz"}]  # fmt: skip
    data = b'{"id": "%s", "decisions": %s}' % (large.id.encode(), json.dumps(odd).encode())
    told = Told(large, {"hansard.compilation.result_ref": ref_of(data)})
    send_payloads(ingesting, [data])
    ingesting.send(spans_of(told.attributes()).request)

    [kept] = stored(ingesting)
    assert (kept.item_id, kept.tokens_before, kept.score_nano, kept.rules, kept.original) == (
        "b", None, None, ("r",), None,
    )  # fmt: skip
    assert "left out" in ingesting.one("SELECT notes FROM compilation")


# ---- hostile columns


def numbered(count: int, **columns: Any) -> dict[str, Any]:
    """Return the columns of a compile that excluded everything."""
    return {
        "hansard.compilation.id": "f" * 32,
        "hansard.item.ids": [f"i{at}" for at in range(count)],
        "hansard.item.decisions": ["exclude"] * count,
        "hansard.item.reasons": ["over_budget"] * count,
        **{f"hansard.item.{name}": value for name, value in columns.items()},
    }


@pytest.mark.parametrize(
    ("columns", "kept", "note"),
    [
        ({"scores": ["0.5"]}, 3, "hansard.item.scores holds 1, for 3 items: left out"),
        ({"kinds": "file"}, 3, "hansard.item.kinds is no list, for 3 items: left out"),
        ({"tokens_before": ["1", "2", "3"]}, 3, "3 values of a wrong type left out"),
        ({"scores": ["0.5", "nan", "many"]}, 3, "hansard.item.scores: 2 values of a wrong type"),
        ({"decisions": ["exclude"]}, 0, "3 receipts left out: without a decision"),
        ({"reasons": ["", "over_budget", ""]}, 1, "2 receipts left out: without a reason"),
        ({"ids": ["a", "", "c"]}, 2, "1 receipts left out: without an item"),
        ({"decisions": ["include"] * 3}, 0, "3 receipts left out: not excluded, and without a so"),
        ({"ids": "a"}, 0, "hansard.item.ids is no list: there are no receipts"),
    ],
)
def test_columns_that_do_not_fit_are_noted_and_never_fail(
    ingesting: Ingesting, columns: dict[str, Any], kept: int, note: str
) -> None:
    assert ingesting.send(spans_of(numbered(3, **columns)).request).rejected == 0

    assert len(stored(ingesting)) == kept
    assert note in ingesting.one("SELECT notes FROM compilation")
    assert verify_store(ingesting.folder).findings == []


def test_a_million_items_are_cut_and_counted(ingesting: Ingesting) -> None:
    count = MOST_RECEIPTS + 10  # and the sender claims more than it tells
    ingesting.send(spans_of(numbered(count, total=10**6)).request)

    row = ingesting.one("SELECT receipt_count, item_total, notes FROM compilation")
    assert row[:2] == (MOST_RECEIPTS, 10**6)
    assert f"only the first {MOST_RECEIPTS:,} of {count:,} receipts are kept" in row[2]


def test_codes_that_are_not_known_here_are_kept_as_they_are(ingesting: Ingesting) -> None:
    later = numbered(1, decisions=["summarise"], reasons=["too_cold"], sources=["hologram x"])
    ingesting.send(spans_of(later | {"hansard.schema_version": "7"}).request)

    [kept] = stored(ingesting)
    assert (kept.decision, kept.reason, kept.source_type) == ("summarise", "too_cold", "hologram")
    version, notes = ingesting.one("SELECT schema_version, notes FROM compilation")
    assert version == "7"
    assert "sent in version '7' of hansard.*" in notes


def test_a_compile_span_without_an_id_is_a_step_like_any_other(ingesting: Ingesting) -> None:
    ingesting.send(spans_of({"hansard.item.ids": ["a"]}).request)

    assert ingesting.one("SELECT count(*) FROM compilation") == 0
    assert ingesting.one("SELECT count(*) FROM span WHERE role = 'compile'") == 1


# ---- what a sound store never holds


@pytest.mark.covers("RC-16")
def test_no_included_item_is_without_provenance(ingesting: Ingesting) -> None:
    tell(ingesting, Told(compiled_files()))
    ingesting.send(spans_of(numbered(3, decisions=["include"] * 3, sources=["", "", ""])).request)

    assert ingesting.one("SELECT count(*) FROM receipt WHERE decision = 'include'") > 0
    nowhere = "SELECT count(*) FROM receipt WHERE decision <> 'exclude' AND source_type IS NULL"
    assert ingesting.one(nowhere) == 0


@pytest.mark.covers("RC-17")
def test_no_excluded_item_is_without_a_reason(ingesting: Ingesting) -> None:
    given = {**crowd(), "token_budget": 27_000}
    compiled = compile_context(given, ports())
    tell(ingesting, Told(compiled))
    # Senders of receipts without a reason: an empty one, and none at all.
    ingesting.send(spans_of(numbered(3, reasons=["", "", ""])).request)
    unsaid = {key: value for key, value in numbered(2).items() if not key.endswith(".reasons")}
    ingesting.send(spans_of(unsaid).request)

    excluded = [one for one in compiled.receipts if one.decision == "exclude"]
    known = ", ".join(f"'{code}'" for code in ReasonCode)
    counted = "SELECT count(*) FROM receipt WHERE decision = 'exclude'"
    with_reason = f"{counted} AND reason IN ({known})"  # NULL is in no list
    assert len({one.reason for one in excluded}) >= 10
    assert ingesting.one(counted) == len(excluded)
    assert ingesting.one(with_reason) == len(excluded)


# ---- retention


@pytest.fixture(params=["metadata_only", "redacted_payloads", "full_payloads"])
def keeping(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Ingesting]:
    ingesting = Ingesting(tmp_path, retention=request.param)
    yield ingesting
    ingesting.close()


def test_decisions_are_kept_in_every_retention_mode(keeping: Ingesting) -> None:
    told = Told(compiled_files())
    tell(keeping, told)

    kept = stored(keeping)
    assert [(one.item_id, one.decision, one.reason) for one in kept] == [
        (one.item_id, one.decision, one.reason.value) for one in told.result.receipts
    ]
    is_withheld = kept[0].original is None
    assert is_withheld == (kept[0].source_type == "withheld")
    payloads = keeping.one("SELECT count(*) FROM payload")
    assert payloads == (0 if is_withheld else len(told.payloads()))


# ---- made again, and deleted


@pytest.mark.parametrize("payloads_first", [True, False])
def test_receipts_are_derived_again_equal(
    ingesting: Ingesting, large: CompileResult, payloads_first: bool
) -> None:
    told = Told(large)
    if payloads_first:
        send_payloads(ingesting, [told.result_bytes])
    ingesting.send(spans_of(told.attributes()).request)
    if not payloads_first:
        send_payloads(ingesting, [told.result_bytes])
    tell(ingesting, Told(compiled_files()))
    before = derived(ingesting)
    spoil = open_for_maintenance(ingesting.folder)
    spoil.execute("DELETE FROM receipt; DELETE FROM compilation")
    spoil.execute("UPDATE run SET has_receipts = 0")
    spoil.close()
    rebuild(ingesting.folder)

    assert derived(ingesting) == before
    assert before["receipt"]


def test_what_an_older_version_derived_is_due_for_a_rebuild(ingesting: Ingesting) -> None:
    tell(ingesting, Told(compiled_files()))
    assert not is_rebuild_due(ingesting.folder)
    older = open_for_maintenance(ingesting.folder)
    older.execute("DELETE FROM receipt; DELETE FROM compilation")
    older.execute("UPDATE span SET derived_version = 1")
    older.close()

    assert is_rebuild_due(ingesting.folder)
    rebuild(ingesting.folder, only_old=True)
    assert len(stored(ingesting)) == 13


def test_a_compile_that_is_told_again_richer_has_one_set_of_receipts(ingesting: Ingesting) -> None:
    told = Told(compiled_files())
    sent = spans_of(told.attributes())
    ingesting.send(sent.request)
    richer = type(sent.request).FromString(sent.request.SerializeToString())
    for one in richer.resource_spans[0].scope_spans[0].spans:
        one.end_time_unix_nano += 1
    ingesting.send(richer)

    assert len(stored(ingesting)) == 13
    assert ingesting.one("SELECT has_receipts FROM run") == 1


@pytest.mark.covers("RC-25")
def test_the_original_of_an_excluded_item_can_be_fetched(ingesting: Ingesting) -> None:
    result = compiled_files()
    tell(ingesting, Told(result))
    out = next(one for one in stored(ingesting) if one.decision == "exclude")
    content = next(one.content for one in result.request.context_items if one.id == out.item_id)

    kept = ingesting.one("SELECT body FROM payload WHERE digest = ?", out.original)
    assert kept == str(content).encode()
    assert digest_of(kept) == out.original
    named = "SELECT count(*) FROM payload_use WHERE payload = ?"
    assert ingesting.one(named, out.original) == 1


def test_a_deleted_run_takes_its_receipts_along_and_no_other_ones(ingesting: Ingesting) -> None:
    gone, stays = (tell(ingesting, Told(compiled_files(12 + at))) for at in (0, 1))
    connection = open_for_maintenance(ingesting.folder)
    delete_run(connection, bytes.fromhex(gone.run_id), reason="by hand")
    collect_garbage(ingesting.folder, connection)
    connection.close()

    span = ingesting.one("SELECT span FROM compilation")
    left = compilation_of_span(ingesting.db, span)
    assert left is not None
    assert left.run_id == stays.run_id
    assert ingesting.all("SELECT DISTINCT span FROM receipt") == [(span,)]
    assert verify_store(ingesting.folder).findings == []


@pytest.mark.parametrize(
    ("damage", "table"),
    [
        ("DELETE FROM receipt WHERE ordinal = 3", "compilation"),
        ("DELETE FROM compilation", "receipt"),
    ],
)
def test_verify_finds_receipts_that_were_lost(
    ingesting: Ingesting, damage: str, table: str
) -> None:
    tell(ingesting, Told(compiled_files()))
    connection = open_for_maintenance(ingesting.folder)
    connection.execute(damage)
    connection.close()

    [found] = verify_store(ingesting.folder).findings
    assert (found.check, found.table) == ("receipts", table)
