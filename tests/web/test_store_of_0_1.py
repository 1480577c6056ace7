"""A store that version 0.1 made: migrated, verified, derived again, read under names of now."""

from __future__ import annotations

import json
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from hansard_compiler import renamed
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import latest_version
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from hansard_web.cli import commands
from tests.signing import People, session_of

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "stores" / "0.1.tar.gz"


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """A copy of the store, as version 0.1 left it."""
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return DataFolder(folder / "store")


@pytest.fixture(scope="module")
def events(old: DataFolder) -> list[Any]:
    """The rows of the audit log, read before anything opened the store."""
    return rows(old, "SELECT * FROM event ORDER BY seq")


@pytest.fixture(scope="module")
def upgraded(old: DataFolder, events: list[Any]) -> DataFolder:
    """The store after a start of the server, which migrates, and a rebuild."""
    open_for_ingest(old).close()
    assert "sound" in run(old, "verify")
    deep = run(old, "verify", "--deep", exit_code=1)  # what it derives, it derives by now otherwise
    assert deep.count("\n") == 2
    assert "`hansard rebuild` derives them again" in deep
    run(old, "rebuild")
    return old


@pytest.fixture(scope="module")
def client(upgraded: DataFolder) -> Iterator[TestClient]:
    """A person's client of a server over the store."""
    app = create_app(upgraded, None, WebSettings())
    with TestClient(app, base_url="http://localhost") as made:
        made.auth = People(upgraded)
        made.cookies.update(session_of(upgraded))
        yield made


def rows(folder: DataFolder, sql: str) -> list[Any]:
    with closing(sqlite3.connect(f"file:{folder.database}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def run(folder: DataFolder, *arguments: str, exit_code: int = 0) -> str:
    group = click.Group("hansard")
    commands(group)
    result = CliRunner().invoke(group, arguments, env={"HANSARD_DATA": str(folder.path)})
    assert result.exit_code == exit_code, result.output
    return result.output


def items(client: TestClient, path: str) -> list[dict[str, Any]]:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def test_it_is_of_the_schema_that_0_1_had() -> None:
    with tarfile.open(ARCHIVE) as archive:
        assert "store/hansard.db" in archive.getnames()


def test_it_is_migrated_and_verifies_also_after_every_row_was_derived_again(
    upgraded: DataFolder,
) -> None:
    assert rows(upgraded, "PRAGMA user_version") == [(latest_version(),)]
    assert "sound" in run(upgraded, "verify")
    assert "sound" in run(upgraded, "verify", "--deep")


def test_what_the_chain_holds_is_the_same_to_the_byte(
    upgraded: DataFolder, events: list[Any]
) -> None:
    found = rows(upgraded, "SELECT * FROM event ORDER BY seq")

    assert [row[: len(events[0])] for row in found[: len(events)]] == events


def test_the_api_names_where_requests_came_from(client: TestClient) -> None:
    annotations = items(client, "/v1/annotations?state=all&limit=100")
    (task,) = items(client, "/v1/tasks?state=approved")
    (memory,) = items(client, "/v1/memory?project=shop")
    read_by = client.get(f"/v1/memory/{memory['memory_id']}").json()["read_by"]

    assert {one["origin"] for one in annotations} == {"cli", "otlp"}
    assert client.get(f"/v1/tasks/{task['task_id']}").json()["task"]["decision"]["origin"] == "cli"
    assert {one["origin"] for one in read_by} == {"api"}


def test_the_names_of_columns_are_those_of_a_new_store(upgraded: DataFolder) -> None:
    assert rows(upgraded, "SELECT DISTINCT origin FROM memory_access ORDER BY 1") == [
        ("api",),
        ("cli",),
    ]
    assert rows(upgraded, "SELECT count(*) FROM memory_events WHERE origin = 'cli'") == [(4,)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hansard.unended", True),
        ("hansard.tool.recorded_part", "call"),
        ("hansard.tool.recorded_part", "result"),
    ],
)
def test_attributes_are_found_and_shown_under_their_new_names(
    client: TestClient, name: str, value: str | bool
) -> None:
    wanted = json.dumps(value).strip('"')
    (found,) = items(client, f"/v1/runs?attribute={name}:{wanted}")
    steps = items(client, f"/v1/runs/{found['run_id']}/steps")
    told = [client.get(f"/v1/steps/{one['step_id']}").json() for one in steps]

    assert value in [one["attributes"].get(name) for one in told]
    assert not any(key in renamed.ATTRIBUTES for one in told for key in one["attributes"])


def test_what_came_in_is_given_back_as_it_was_sent(client: TestClient) -> None:
    (found,) = items(client, "/v1/runs?attribute=hansard.tool.recorded_part:call")

    exported = client.get(f"/v1/runs/{found['run_id']}/export?format=otlp-json").text

    assert '"hansard.tool.told"' in exported
    assert '"hansard.tool.recorded_part"' not in exported
