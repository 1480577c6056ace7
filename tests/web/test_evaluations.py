"""Verdicts on claims, as pages, the API and the command line show them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from hansard_web.evaluation.api import EvaluationList
from hansard_web.evaluation.cli import evaluate
from tests.collector.evaluation import evaluating as making
from tests.collector.evaluation.evaluating import Evaluating, says, tool
from tests.web.answers import check_fits
from tests.web.html import Element, parse


@pytest.fixture
def evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Evaluating]:
    """A run of half an hour ago that said something wrong and something right."""
    monkeypatch.setattr(making, "START", time.time_ns() - 1_800 * 10**9)
    made = Evaluating(tmp_path / "data")
    made.run(
        1,
        tool("run_tests", 2, error="1 failed"),
        tool("send_email", 3),
        says("All tests pass. I sent the email. The deploy succeeded, see <b>it</b>.", 4),
    )
    yield made
    made.close()


@pytest.fixture
def client(evaluated: Evaluating) -> Iterator[TestClient]:
    with TestClient(
        create_app(evaluated.folder, None, WebSettings()), base_url="http://localhost"
    ) as made:
        yield made


def command(evaluated: Evaluating, *arguments: str) -> str:
    """Run `hansard evaluate` and return what it prints."""
    done = CliRunner().invoke(
        evaluate, ["--data", str(evaluated.folder.path), *arguments], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return done.stdout


def page(client: TestClient, path: str) -> Element:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return parse(answer.text)


@pytest.mark.covers("EL-01", "EL-07")
def test_the_command_prints_verdicts_and_figures_as_json(evaluated: Evaluating) -> None:
    told = json.loads(command(evaluated, "--json"))

    assert told["new"] == {"confirmed": 1, "contradicted": 1, "claimed": 1, "unknown": 0}
    assert told["corrections"] == 1
    wrong = next(one for one in told["items"] if one["verdict"] == "contradicted")
    assert wrong["claim"]["tool"] == "tests"
    assert wrong["correction_id"]


def test_a_dry_run_of_the_command_stores_nothing(evaluated: Evaluating) -> None:
    command(evaluated, "--dry-run")

    assert evaluated.verdicts() == []


@pytest.mark.covers("EL-04", "EL-11")
def test_a_run_shows_at_its_top_what_the_record_contradicts(
    evaluated: Evaluating, client: TestClient
) -> None:
    command(evaluated)
    run = f"{1:032x}"

    head = page(client, f"/runs/{run}").one(class_="claims")

    (line,) = head.all(class_="claim", data_verdict="contradicted")
    said = line.one(class_="claim-say").text
    assert said == "Claimed All tests pass; the last run of tests (run_tests) failed."
    links = [one.attributes["href"] for one in line.all("a")]
    assert links[:2] == [f"/steps/{run}-{4:016x}", f"/steps/{run}-{2:016x}"]
    for href in links:
        page(client, href)


def test_a_step_shows_its_own_claims_without_running_what_they_hold(
    evaluated: Evaluating, client: TestClient
) -> None:
    command(evaluated)

    claims = page(client, f"/steps/{1:032x}-{4:016x}").one(class_="claims")

    assert len(claims.all(class_="claim")) == 3
    assert "<b>it</b>" in claims.text
    assert page(client, f"/steps/{1:032x}-{2:016x}").all(class_="claims") == []


def test_the_api_lists_verdicts_and_narrows_them(evaluated: Evaluating, client: TestClient) -> None:
    command(evaluated)

    def listed(**query: str) -> list[str]:
        answer = client.get("/v1/evaluations", params=query).json()
        check_fits(EvaluationList, answer)
        return sorted(one["claim"]["tool"] for one in answer["items"])

    assert listed() == ["deploy", "send email", "tests"]
    assert listed(verdict="contradicted") == listed(tool="run_tests") == ["tests"]
    assert listed(run=f"{1:032x}", verdict="claimed") == ["deploy"]
    assert client.get("/v1/evaluations", params={"verdict": "perhaps"}).status_code == 400
    assert client.get("/v1/evaluations", params={"run": "ff" * 16}).status_code == 404


def test_pages_of_the_list_join(evaluated: Evaluating, client: TestClient) -> None:
    command(evaluated)

    first = client.get("/v1/evaluations", params={"limit": "2"}).json()
    second = client.get(
        "/v1/evaluations", params={"limit": "2", "cursor": first["next_cursor"]}
    ).json()

    assert (len(first["items"]), len(second["items"]), second["next_cursor"]) == (2, 1, None)
