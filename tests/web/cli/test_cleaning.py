"""delete, pin, gc, verify, rebuild: what goes, what stays, and who is asked."""

from __future__ import annotations

import getpass
import json
import re
import shutil
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from hansard._config.setting import read_size_bytes
from hansard_store.approvals.service import ApprovalService
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.disk import disk_use
from hansard_web.app.old_runs import Limits, clean
from tests.journeys.processes import export, grpc_exporter, hosting, serving, spans
from tests.web.cli.conftest import Cli

pytestmark = pytest.mark.slow


@pytest.fixture
def store(demo_data: Path, tmp_path: Path) -> Path:
    """A copy of the demo's store, to be cut up."""
    return Path(shutil.copytree(demo_data, tmp_path / "store"))


@pytest.fixture
def on(anywhere: Cli, store: Path) -> Cli:
    def run(*arguments: str) -> Any:
        return anywhere(*arguments, HANSARD_DATA=str(store))

    return run


def _runs(on: Cli) -> list[str]:
    return [run["run_id"] for run in json.loads(on("runs", "list", "--json").stdout)["items"]]


def test_a_deleted_run_is_gone_and_the_others_are_whole(on: Cli) -> None:
    first, *others = _runs(on)

    ended = on("runs", "delete", first[:10], "--yes")

    assert ended.exit_code == 0
    assert first in ended.stdout
    assert _runs(on) == others
    assert on("verify").exit_code == 0


def test_without_a_terminal_deleting_needs_yes(on: Cli) -> None:
    before = _runs(on)

    ended = on("runs", "delete", before[0])

    assert ended.exit_code == 2
    assert "--yes" in ended.stderr
    assert _runs(on) == before


def test_nothing_is_deleted_when_one_of_the_runs_is_not_there(on: Cli) -> None:
    before = _runs(on)

    ended = on("runs", "delete", before[0], "0123456789", "--yes")

    assert ended.exit_code == 1
    assert _runs(on) == before


def test_purging_leaves_no_byte(on: Cli, store: Path) -> None:
    said = b"The tank has a crack"
    conversation = json.loads(on("search", '"tank has a crack"', "--json").stdout)["items"]
    assert conversation
    runs = [
        run["run_id"]
        for run in json.loads(
            on("runs", "list", "--conversation", "order-a-1042", "--json").stdout
        )["items"]
    ]

    assert on("runs", "delete", *runs, "--yes", "--purge").exit_code == 0

    left = b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())
    assert said not in left
    assert json.loads(on("search", '"tank has a crack"', "--json").stdout)["items"] == []


@pytest.mark.covers("RC-29")
@pytest.mark.parametrize(("how", "reason"), [((), "by hand"), (("--purge",), "purge")])
def test_page_api_and_command_report_when_a_run_was_deleted_by_whom_and_why(
    on: Cli, store: Path, how: tuple[str, ...], reason: str
) -> None:
    gone, *_ = json.loads(on("runs", "list", "--json").stdout)["items"]
    [step, *_] = json.loads(on("runs", "show", gone["run_id"], "--json").stdout)["steps"]
    begun = datetime.now(UTC)

    assert on("runs", "delete", gone["run_id"], "--yes", *how).exit_code == 0

    shown = on("runs", "show", gone["run_id"][:8])
    with hosting(store) as server:
        page, body = (
            _refused(f"{server.http}{path}/{gone['run_id'][:12]}") for path in ("/runs", "/v1/runs")
        )
        of_step = _refused(f"{server.http}/steps/{step['step_id']}")
    error = json.loads(body)["error"]
    details = error["details"]
    assert error["code"] == "run_deleted"
    assert (details["run_id"], details["reason"]) == (gone["run_id"], reason)
    assert (details["span_count"], details["deleted_by"]) == (gone["span_count"], getpass.getuser())
    deleted = datetime.fromtimestamp(int(details["deleted_ns"]) / 1e9, UTC)
    assert begun <= deleted <= datetime.now(UTC)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", details["digest"])
    assert shown.exit_code == 1
    for text in (page, of_step, shown.stderr):
        assert gone["run_id"] in text
        assert f"deleted at {deleted:%Y-%m-%d %H:%M:%S} UTC by {getpass.getuser()}" in text
        assert ("purged" in text) == (reason == "purge")
        assert details["digest"] in text
    assert on("verify").exit_code == 0


def _refused(address: str) -> str:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(address, timeout=20)
    assert refused.value.code == 404
    return refused.value.read().decode()


def test_a_run_that_a_setting_deleted_names_the_setting(on: Cli) -> None:
    first, *_ = _runs(on)

    assert on("gc", "--max-disk", "1KB").exit_code == 0

    assert "UTC, by the setting max_disk" in on("runs", "show", first).stderr


def test_a_pinned_run_outlives_the_limits(on: Cli) -> None:
    pinned = _runs(on)[4]
    assert on("runs", "pin", pinned).exit_code == 0

    assert on("gc", "--max-disk", "1KB").exit_code == 0

    assert _runs(on) == [pinned]
    assert on("runs", "pin", "--off", pinned).exit_code == 0
    assert on("gc", "--max-disk", "1KB").exit_code == 0
    assert _runs(on) == []


def test_what_is_young_stays(on: Cli) -> None:
    before = _runs(on)

    ended = on("gc", "--keep", "30d", "--max-disk", "10GB", "--json")

    assert json.loads(ended.stdout)["too_old"] == 0
    assert _runs(on) == before


def test_what_has_had_no_news_for_too_long_goes(store: Path, on: Cli) -> None:
    folder = DataFolder(store)
    connection = open_for_maintenance(folder)
    newest = connection.execute("SELECT max(last_received_ns) FROM run").get

    cleaned = clean(folder, connection, Limits(keep_ns=10), now_ns=newest + 10)
    connection.close()

    assert cleaned.too_old == 16  # the newest had its news just then
    assert len(_runs(on)) == 1


RUNS = 150


def test_a_store_over_its_size_loses_its_oldest_runs(tmp_path: Path) -> None:
    """Enough runs to be larger than an empty store by a multiple."""
    with hosting(tmp_path) as server:
        for _ in range(RUNS):
            assert export(grpc_exporter(server), spans(60))
    folder = DataFolder(tmp_path)
    connection = open_for_maintenance(folder)
    full = disk_use(folder, connection).used_bytes
    order = [
        row[0] for row in connection.execute("SELECT id FROM run ORDER BY last_received_ns, id")
    ]

    cleaned = clean(folder, connection, Limits(max_bytes=full * 3 // 4), now_ns=0)

    left = [
        row[0] for row in connection.execute("SELECT id FROM run ORDER BY last_received_ns, id")
    ]
    connection.close()
    assert 0 < cleaned.too_much < RUNS
    assert left == order[cleaned.too_much :]
    assert cleaned.size_bytes <= full * 3 // 4


def test_a_server_cleans_by_itself(tmp_path: Path) -> None:
    with hosting(tmp_path) as server:
        assert export(grpc_exporter(server), spans(3))
    connection = apsw.Connection(str(tmp_path / "hansard.db"))
    connection.execute("UPDATE run SET last_received_ns = 1")
    connection.close()

    with serving(tmp_path, "--keep", "1d") as server:
        follower = apsw.Connection(str(tmp_path / "hansard.db"))
        follower.set_busy_timeout(1000)
        while follower.execute("SELECT count(*) FROM run").get:
            assert server.process.poll() is None
        follower.close()


def test_damage_is_found_and_named(store: Path, on: Cli) -> None:
    connection = apsw.Connection(str(store / "hansard.db"))
    connection.execute("UPDATE content SET digest = zeroblob(32) WHERE id = 1")
    connection.close()

    ended = on("verify")

    assert ended.exit_code == 1
    assert ended.stdout.splitlines() == [
        "seals: content 1: is not as Hansard wrote it",
        "contents: content 1: its bytes are not those of its digest",
    ]
    assert "2 findings" in ended.stderr
    assert "restore a backup" in ended.stderr


def test_sizes_and_limits_speak_of_the_same_bytes() -> None:
    assert Limits(max_bytes=read_size_bytes("1KB")).max_bytes == 1024
    assert not Limits().any


def test_a_rebuild_changes_nothing_that_lists_show(on: Cli) -> None:
    def shown() -> list[Any]:
        runs = json.loads(on("runs", "list", "--json").stdout)["items"]
        return [{k: v for k, v in run.items() if k != "version"} for run in runs]

    before = shown()

    ended = on("rebuild", "--json")

    assert json.loads(ended.stdout)["runs"] == 17
    assert shown() == before
    assert on("verify").exit_code == 0


def test_verify_counts_deleted_runs_and_the_tombstones_that_are_held(on: Cli, store: Path) -> None:
    first, second, *_ = _runs(on)
    assert "deleted" not in on("verify").stdout
    assert on("runs", "delete", first, second, "--yes").exit_code == 0
    fresh = json.loads(on("verify", "--json").stdout)
    with ApprovalService(DataFolder(store)) as desk:
        desk.seal()

    said = on("verify").stdout
    told = json.loads(on("verify", "--json").stdout)

    assert (fresh["deleted_runs"], fresh["verified_tombstones"]) == (2, 0)
    assert "deleted: 2 runs, 2 of 2 tombstones held by the chain" in said
    assert (told["deleted_runs"], told["verified_tombstones"]) == (2, 2)
