"""`kind=` narrows lists of runs, facets and search; without it nothing is left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hansard_web.cli import commands
from hansard_web.cli.base import CommandGroup
from tests.web.api.conftest import Api
from tests.web.api.otlp import chat, run_id, span, traces

KINDS = [(None, ["fix", "request"]), ("agent", ["fix"]), ("other", ["request"])]


@pytest.fixture
def mixed(api: Api) -> Api:
    api.send(traces(span("GET /marmot", run="request")))
    api.send(traces(span("GET /marmot", run="fix"), chat("chat", run="fix")))
    return api


@pytest.mark.parametrize(
    ("kind", "found"), [*KINDS, ("any", ["fix", "request"]), ("", KINDS[0][1])]
)
def test_runs_are_listed_by_kind(mixed: Api, kind: str | None, found: list[str]) -> None:
    wanted = {} if kind is None else {"kind": kind}

    items = mixed.items("/v1/runs", **wanted)

    assert [item["run_id"] for item in items] == [run_id(name) for name in found]
    assert mixed.get("/v1/facets", **wanted)["runs"] == len(found)
    assert mixed.get(f"/v1/runs/{run_id('fix')}")["kind"] == "agent"
    assert mixed.get(f"/v1/runs/{run_id('request')}")["kind"] == "other"


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/facets", "/v1/search"])
def test_an_unknown_kind_is_refused_with_those_there_are(mixed: Api, path: str) -> None:
    error = mixed.refused(400, path, kind="best", q="marmot")

    assert error["details"]["parameter"] == "kind"
    assert "agent, other, any" in error["message"]


@pytest.mark.parametrize(
    ("kind", "found"), [(None, "request"), ("agent", "fix"), ("other", "request")]
)
def test_a_text_is_found_in_a_run_of_the_kind(mixed: Api, kind: str | None, found: str) -> None:
    wanted = {} if kind is None else {"kind": kind}

    hits = mixed.items("/v1/search", q="marmot", **wanted)

    assert [hit["step"]["run_id"] for hit in hits] == [run_id(found)]


def test_what_only_one_kind_says_is_not_found_in_the_other(mixed: Api) -> None:
    mixed.send(traces(span("GET /badger", run="request")))
    said = mixed.items("/v1/search", q="badger")

    assert len(said) == 1
    assert mixed.items("/v1/search", q="badger", kind="agent") == []
    assert mixed.items("/v1/search", q="badger", kind="other") == said


def test_sql_and_commands_tell_the_kind(mixed: Api, tmp_path: Path) -> None:
    rows = mixed.http.get("/v1/sql", params={"q": "SELECT kind FROM runs ORDER BY 1"})
    assert rows.status_code == 200, rows.text
    assert [row[0] for row in rows.json()["rows"]] == ["agent", "other"]

    group = CommandGroup("hansard")
    commands(group)
    asked = ["list", "--data", str(mixed.folder.path), "--json", "--kind"]
    listed = CliRunner().invoke(group, ["runs", *asked, "other"])
    assert run_id("request") in listed.output
    assert run_id("fix") not in listed.output
    refused = CliRunner().invoke(group, ["runs", *asked, "best"])
    assert refused.exit_code == 1
    assert "agent, other, any" in refused.output
