"""Claims of runs, transcripts and memory against the record, over a real store."""

from __future__ import annotations

from pathlib import Path

import pytest

from hansard_collector.evaluation.settings import load_rules
from hansard_store.database.connections import open_for_maintenance
from hansard_store.evaluation.verdicts import VerdictFilter, list_verdicts
from hansard_store.maintenance.deletion import delete_run
from hansard_store.memory.rows import find_number
from tests.collector.evaluation.evaluating import Evaluating, says, tool


def corrections(evaluating: Evaluating, **asked: object) -> list[dict[str, object]]:
    """Return the corrections that a read gets."""
    return [one for one in evaluating.read(**asked) if one["memory_type"] == "correction"]


@pytest.mark.covers("EL-01", "EL-02", "EL-03", "EL-04", "EL-05", "EL-07", "DM-09", "TS-26")
def test_a_healthy_claim_in_memory_and_an_error_of_the_tool_make_a_correction(
    evaluating: Evaluating,
) -> None:
    claim = evaluating.remember("The search tool is healthy.", subject="search")
    run = evaluating.run(1, tool("search", 2, error="connection refused"), at_s=60)

    found = evaluating.evaluate()

    (verdict,) = found.new
    assert (verdict.verdict, verdict.source, verdict.subject) == (
        "contradicted",
        "memory",
        "search",
    )
    both = evaluating.read(text="search")
    assert [one["memory_type"] for one in both] in (["correction", "fact"], ["fact", "correction"])
    (correction,) = corrections(evaluating)
    assert correction["metadata"]["corrects"] == claim["memory_id"]  # type: ignore[index]  # JSON
    assert correction["source_step_ids"] == [f"{run}-{2:016x}"]
    assert correction["source_run_id"] == run
    assert evaluating.ingesting.one("SELECT 1 FROM span WHERE span_id = ?", bytes(7) + b"\2")
    assert found.corrections == 1


@pytest.mark.covers("EL-06", "EL-10", "EL-13")
def test_the_last_execution_before_a_claim_decides(evaluating: Evaluating) -> None:
    evaluating.run(
        1,
        tool("run_tests", 2, error="1 failed"),
        says("All tests pass.", 3),
        tool("run_tests", 4),
        says("All tests pass now.", 5),
        says("I sent the email.", 6),
    )

    evaluating.evaluate()

    assert [(one.verdict, one.action_status) for one in evaluating.verdicts()] == [
        ("contradicted", "contradicted"),
        ("confirmed", "verified"),
        ("claimed", "acted"),
    ]


@pytest.mark.covers("EL-08")
def test_the_same_contradiction_is_counted_and_not_corrected_again(evaluating: Evaluating) -> None:
    evaluating.remember("The search tool is healthy.", subject="search")
    evaluating.run(1, tool("search", 2, error="refused"), at_s=60)
    evaluating.evaluate(at_s=100)

    again = evaluating.evaluate(at_s=200)

    (verdict,) = evaluating.verdicts()
    assert (again.new, again.corrections, again.counted, verdict.count) == ([], 0, 1, 2)
    assert [one["version"] for one in corrections(evaluating)] == [1]


@pytest.mark.covers("EL-08")
def test_new_evidence_makes_a_newer_version_of_the_correction(evaluating: Evaluating) -> None:
    evaluating.remember("The search tool is healthy.", subject="search")
    evaluating.run(1, tool("search", 2, error="refused"), at_s=60)
    evaluating.evaluate(at_s=100)
    evaluating.run(2, tool("search", 3, error="refused"), at_s=120)

    evaluating.evaluate(at_s=200)

    (correction,) = corrections(evaluating)
    assert (correction["version"], "2 of 2 runs" in str(correction["content"])) == (2, True)


def test_a_success_after_a_contradiction_says_since_when(evaluating: Evaluating) -> None:
    evaluating.remember("The search tool is healthy.", subject="search")
    evaluating.run(1, tool("search", 2, error="refused"), at_s=60)
    evaluating.evaluate(at_s=100)
    evaluating.run(2, tool("search", 3), at_s=120)

    evaluating.evaluate(at_s=200)

    (verdict,), (correction,) = evaluating.verdicts(), corrections(evaluating)
    assert verdict.verdict == "contradicted"
    assert "It has succeeded again since" in str(correction["content"])


@pytest.mark.covers("EL-09")
def test_a_claim_without_an_execution_is_listed_as_unverified(evaluating: Evaluating) -> None:
    evaluating.remember("fetch_logs is healthy.", subject="logs")
    evaluating.run(1, says("All tests pass.", 2))

    found = evaluating.evaluate()

    assert {one.verdict for one in found.new} == {"claimed"}
    assert found.unverified == [("fetch_logs", 1), ("tests", 1)]
    assert found.corrections == 0


@pytest.mark.covers("EL-09")
def test_success_evidence_can_be_required_of_a_tool(evaluating: Evaluating, tmp_path: Path) -> None:
    rules = tmp_path / "evidence.toml"
    rules.write_text(
        '[[evidence]]\ntools = ["run_backup"]\nrequired = true\n'
        'success = { patterns = ["verified"] }\nfailure = { fields = { state = ["partial"] } }\n',
        encoding="utf-8",
    )
    evaluating.rules = load_rules(rules)
    for number, result in enumerate(("done", "done, verified", {"state": "partial"}), start=1):
        evaluating.run(
            number, tool("run_backup", 2, result=result), says("The backup succeeded.", 3),
            at_s=number,
        )  # fmt: skip

    evaluating.evaluate()

    kinds = [one.verdict for one in evaluating.verdicts()]
    assert kinds == ["unknown", "confirmed", "contradicted"]


@pytest.mark.covers("EL-12")
def test_a_tool_that_no_step_records_is_listed(evaluating: Evaluating) -> None:
    asked = {"type": "tool_call", "id": "c1", "name": "send_fax", "arguments": {}}
    evaluating.run(1, says("", 2, calls=[asked]))

    found = evaluating.evaluate()

    assert found.unrecorded == [("send_fax", 1)]


def test_a_wrong_run_is_corrected_where_its_agent_reads(evaluating: Evaluating) -> None:
    evaluating.run(1, tool("run_tests", 2, error="1 failed"), says("All tests pass.", 3))

    evaluating.evaluate()

    read = evaluating.read(namespace={"agent": "coder"})
    assert [(one["memory_type"], one["subject"]) for one in read] == [("correction", "run_tests")]


def test_a_wrong_run_is_corrected_in_the_namespace_that_it_used(evaluating: Evaluating) -> None:
    run = evaluating.run(1, tool("run_tests", 2, error="1 failed"), says("All tests pass.", 3))
    evaluating.read(run_id=run)
    evaluating.remember("Money is Decimal.", subject="money", run_id=run)

    evaluating.evaluate()

    assert len(corrections(evaluating)) == 1


def test_runs_of_one_agent_that_are_wrong_alike_share_a_correction(evaluating: Evaluating) -> None:
    for number in (1, 2, 3):
        steps = (tool("run_tests", 2, error="1 failed"), says("All tests pass.", 3))
        evaluating.run(number, *steps, at_s=number * 10)

    found = evaluating.evaluate()

    assert (len(found.new), found.corrections) == (3, 1)
    assert len({one.correction for one in evaluating.verdicts()}) == 1


def test_earlier_runs_of_a_conversation_are_evidence(evaluating: Evaluating) -> None:
    evaluating.run(1, tool("run_tests", 2, error="1 failed"), talk="t1")
    evaluating.run(2, says("All tests pass.", 3), at_s=60, talk="t1")

    evaluating.evaluate()

    assert [one.verdict for one in evaluating.verdicts()] == ["contradicted"]


def test_a_tool_of_another_run_is_no_evidence_of_a_run(evaluating: Evaluating) -> None:
    evaluating.run(1, tool("run_tests", 2, error="1 failed"))
    evaluating.run(2, says("All tests pass.", 3), at_s=60)

    evaluating.evaluate()

    assert [one.verdict for one in evaluating.verdicts()] == ["claimed"]


def test_a_call_that_is_still_open_leaves_a_claim_unknown(evaluating: Evaluating) -> None:
    evaluating.run(1, tool("run_tests", 2, is_open=True), says("All tests pass.", 3))

    evaluating.evaluate()

    assert [one.verdict for one in evaluating.verdicts()] == ["unknown"]


def test_a_late_execution_changes_the_verdict_and_withdraws_the_correction(
    evaluating: Evaluating,
) -> None:
    evaluating.run(1, tool("run_tests", 2, error="1 failed"), says("All tests pass.", 5))
    evaluating.evaluate(at_s=100)
    late = tool("run_tests", 4)
    evaluating.run(1, tool("read_file", 6), late)
    late_ns = late.end_time_unix_nano

    evaluating.evaluate(at_s=200)

    (verdict,) = evaluating.verdicts()
    assert (verdict.verdict, verdict.decided_ns) == ("confirmed", late_ns)
    (correction,) = evaluating.read(namespace={"agent": "coder"})
    assert correction["content"].startswith("Withdrawn:")


def test_a_dry_run_writes_nothing(evaluating: Evaluating) -> None:
    evaluating.remember("The search tool is healthy.", subject="search")
    evaluating.run(1, tool("search", 2, error="refused"), at_s=60)

    found = evaluating.evaluate(dry_run=True)

    assert [one.verdict for one in found.new] == ["contradicted"]
    assert (evaluating.verdicts(), corrections(evaluating)) == ([], [])


def test_deleting_a_run_takes_its_verdicts(evaluating: Evaluating) -> None:
    run = evaluating.run(1, tool("run_tests", 2), says("All tests pass.", 3))
    evaluating.evaluate()
    connection = open_for_maintenance(evaluating.folder)

    delete_run(connection, bytes.fromhex(run), reason="by hand")
    connection.close()

    assert evaluating.verdicts() == []
    assert evaluating.ingesting.all("SELECT * FROM evaluated_run") == []


def test_a_purge_takes_the_words_of_a_claim_and_its_correction(evaluating: Evaluating) -> None:
    claim = evaluating.remember("The search tool is healthy.", subject="search")
    evaluating.run(1, tool("search", 2, error="refused"), at_s=60)
    evaluating.evaluate()

    evaluating.purge(claim["memory_id"])

    number = find_number(evaluating.ingesting.db, claim["memory_id"])
    filters = VerdictFilter(memory=number)
    (verdict,) = list_verdicts(evaluating.ingesting.db, filters).items
    assert (verdict.said, verdict.verdict) == ("", "contradicted")
    states = evaluating.ingesting.all("SELECT memory_type, state FROM memory ORDER BY id")
    assert states == [("fact", "purged"), ("correction", "purged")]


def test_nothing_is_read_again_while_nothing_changes(evaluating: Evaluating) -> None:
    evaluating.run(1, tool("run_tests", 2), says("All tests pass.", 3))
    first = evaluating.evaluate(at_s=100)

    second = evaluating.evaluate(at_s=200)

    assert (first.runs, second.runs, second.texts) == (1, 0, 0)


def test_a_longer_window_judges_what_came_before(evaluating: Evaluating) -> None:
    evaluating.run(1, tool("run_tests", 2), says("All tests pass.", 3))
    evaluating.run(2, says("Nothing to do.", 3), at_s=200_000)
    short = evaluating.evaluate(at_s=200_100)

    longer = evaluating.evaluate(at_s=200_200, window_s=300_000)

    assert (len(short.new), len(longer.new)) == (0, 1)


def test_notes_of_the_heartbeat_and_of_outside_claim_nothing(evaluating: Evaluating) -> None:
    for origin in ("diagnostic", "external", "evaluation"):
        evaluating.remember(
            "The search tool is healthy.", subject=origin, metadata={"origin": origin}
        )
    evaluating.run(1, tool("search", 2, error="refused"))

    assert evaluating.evaluate().new == []


def test_what_leaves_the_window_takes_no_contradiction_back(evaluating: Evaluating) -> None:
    evaluating.run(1, tool("search", 2, error="refused"))
    evaluating.remember("The search tool is healthy.", subject="search", at_s=60)
    evaluating.evaluate(at_s=100)
    evaluating.run(2, tool("read_file", 3), at_s=120)

    evaluating.evaluate(at_s=150, window_s=100)

    assert [one.verdict for one in evaluating.verdicts()] == ["contradicted"]
    assert [one["version"] for one in corrections(evaluating)] == [1]


def test_corrections_and_notes_of_the_heartbeat_are_no_news(evaluating: Evaluating) -> None:
    evaluating.remember("The search tool is healthy.", subject="search")
    evaluating.run(1, tool("search", 2, error="refused"), at_s=60)
    evaluating.evaluate(at_s=100)
    evaluating.remember(
        "[evaluation] done: search works", subject="heartbeat evaluation", at_s=110,
        namespace={"agent": "hansard.heartbeat"}, metadata={"origin": "diagnostic"},
    )  # fmt: skip

    again = evaluating.evaluate(at_s=200)

    assert (again.texts, again.new, again.counted) == (0, [], 1)
