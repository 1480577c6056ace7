"""hansard scan: asks nobody unless it may, holds stories against interests, shows what it did."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from hansard_web.health.offline import prove_offline
from tests.collector.scanning.hacker_news import HackerNewsServer, hacker_news, status
from tests.journeys.processes import HANSARD
from tests.store.empty import empty_store
from tests.web.cli.conftest import Cli

INTEREST = ("SQLite full text search", "--type", "interest", "--subject", "search", "--writer",
            "app", "--project", "quillbook")  # fmt: skip
ON = ("--outbound", "on")


@pytest.fixture
def server() -> Iterator[HackerNewsServer]:
    with hacker_news() as served:
        served.add(11, "Full-text search in SQLite \x1b[31mred")
        served.add(12, "A history of bread")
        yield served


@pytest.fixture
def scan(anywhere: Cli, tmp_path: Path, server: HackerNewsServer) -> Cli:
    """Run a scan of the local server, on a store with one interest."""
    data = str(empty_store(tmp_path / "data").path)
    assert anywhere("memory", "write", *INTEREST, HANSARD_DATA=data).exit_code == 0

    def run(*arguments: str, **more: str) -> Result:
        return anywhere("scan", "--url", server.address, *arguments, HANSARD_DATA=data, **more)

    return run


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.covers("IN-09")
def test_a_scan_that_nobody_permitted_asks_nobody(scan: Cli, server: HackerNewsServer) -> None:
    result = scan()

    assert result.exit_code == 2
    assert "`outbound` is off" in result.stderr
    assert "HANSARD_OUTBOUND=on" in result.stderr
    assert server.asked == []


@pytest.mark.covers("IN-09")
def test_a_fresh_install_makes_no_outside_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where only the loopback is and the kernel counts what wanted out: a scan as installed."""
    data = empty_store(tmp_path / "data").path
    monkeypatch.delenv("HANSARD_OUTBOUND", raising=False)
    program = f"""
import subprocess
told = subprocess.run([{HANSARD!r}, "scan", "--data", {str(data)!r}], capture_output=True)
assert told.returncode == 2, told
"""
    proof = prove_offline(sys.executable, "-c", program)

    assert proof.is_possible, proof.story
    assert proof.has_worked, proof.story
    assert proof.attempts == 0


@pytest.mark.parametrize("how", ["argument", "environment", "file"])
def test_it_is_permitted_like_any_setting(scan: Cli, tmp_path: Path, how: str) -> None:
    (tmp_path / "data" / "hansard.toml").write_text('outbound = "on"\n' if how == "file" else "")
    given = ON if how == "argument" else ()
    more = {"HANSARD_OUTBOUND": "on"} if how == "environment" else {}

    assert told(scan("--json", *given, **more))["accepted"] == 1


def test_it_says_what_was_fetched_known_accepted_and_refused(scan: Cli) -> None:
    first, second = scan(*ON), scan(*ON)

    assert first.exit_code == second.exit_code == 0
    assert first.stdout.startswith(
        "2 stories listed, 0 known, 2 fetched: 1 accepted, 1 refused, 0 failed\n"
    )
    assert "https://example.com/11" in first.stdout
    assert "\x1b" not in first.stdout
    assert second.stdout.startswith("2 stories listed, 2 known, 0 fetched: 0 accepted, 0 refused")


def test_programs_are_told_story_by_story(scan: Cli, server: HackerNewsServer) -> None:
    server.raw(13, b"null")

    found = told(scan("--json", *ON))

    figures = {"listed": 3, "known": 0, "fetched": 2, "accepted": 1, "refused": 1, "failed": 1}
    assert found.items() >= {"source": "hackernews", "interests": 1, **figures}.items()
    assert [one["outcome"] for one in found["stories"]] == ["accepted", "refused", "failed"]
    accepted, refused, failed = found["stories"]
    assert (accepted["interest"], accepted["score"]) == ("search", 110)
    assert refused["memory_id"] is None
    assert failed["error"]["code"] == "invalid_response"


def test_a_dry_run_shows_and_keeps_nothing(scan: Cli) -> None:
    dry = scan("--dry-run", *ON)

    assert "1 accepted" in dry.stdout
    assert "nothing is kept" in dry.stdout
    assert told(scan("--history", "--json"))["items"] == []


def test_the_history_asks_nobody(scan: Cli, server: HackerNewsServer) -> None:
    scan(*ON)
    server.asked.clear()

    items = told(scan("--history", "--json"))["items"]
    shown = scan("--history", "--limit", "1").stdout

    assert {one["story_id"]: one["outcome"] for one in items} == {"11": "accepted", "12": "refused"}
    assert items[0]["classifier"] == "offline/1"
    assert len(shown.splitlines()) == 2
    assert server.asked == []
    assert scan("--history", "--dry-run").exit_code == 2


def test_the_threshold_says_how_near_is_near(scan: Cli, server: HackerNewsServer) -> None:
    server.add(13, "Full text search in PostgreSQL")

    def accepted(threshold: str) -> int:
        found = told(scan("--json", "--dry-run", "--threshold", threshold, *ON))
        return int(found["accepted"])

    assert (accepted("1"), accepted("0.75"), accepted("0.8")) == (1, 2, 1)
    assert scan("--threshold", "0", *ON).exit_code == 2


def test_a_source_that_is_down_ends_it_with_1(scan: Cli, server: HackerNewsServer) -> None:
    server.answers["/topstories.json"] = status(503)

    result = scan(*ON)

    assert result.exit_code == 1
    assert "answered 503" in result.stderr


def test_nothing_but_failures_ends_it_with_1(scan: Cli, server: HackerNewsServer) -> None:
    server.answers |= {"/item/11.json": b"null", "/item/12.json": b"null"}

    result = scan("--json", *ON)

    assert result.exit_code == 1
    assert json.loads(result.stdout)["failed"] == 2


def test_a_story_that_was_deleted_is_told_and_no_failure_of_the_scan(
    scan: Cli, server: HackerNewsServer
) -> None:
    scan(*ON)
    server.raw(13, b"null")

    result = scan(*ON)

    assert result.exit_code == 0
    assert result.stderr.startswith("13: ")


def test_an_address_that_is_none_ends_it_with_2(anywhere: Cli, tmp_path: Path) -> None:
    data = str(empty_store(tmp_path / "data").path)

    result = anywhere("scan", "--url", "ftp://example.com", *ON, HANSARD_DATA=data)

    assert result.exit_code == 2
    assert "no address of a source" in result.stderr


def test_without_interests_it_says_how_to_write_one(
    anywhere: Cli, tmp_path: Path, server: HackerNewsServer
) -> None:
    data = str(empty_store(tmp_path / "data").path)

    result = anywhere("scan", "--url", server.address, *ON, HANSARD_DATA=data)

    assert result.exit_code == 1
    assert "hansard memory write" in result.stderr
    assert server.asked == []


@pytest.mark.covers("MM-14", "IN-05")
def test_a_scan_asks_the_classifier_of_the_settings(
    scan: Cli, server: HackerNewsServer, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    verdict = json.dumps({"label": "SQLite full text search", "score": 0.9, "reason": "fake"})
    script.write_text(json.dumps({"hansard_script": 1, "otherwise": {"say": verdict}}))

    offline = told(scan(*ON, "--dry-run", "--json"))
    by_model = told(
        scan(*ON, "--json", "--classifier", "topic=scripted:small", "--script", str(script))
    )
    off = scan(*ON, "--classifier", "off")

    assert (offline["classifier"], offline["accepted"]) == ("offline/1", 1)
    assert (by_model["classifier"], by_model["accepted"]) == ("scripted:small", 2)
    assert off.exit_code == 1
    assert "switched off" in off.stderr
