"""backup, restore, import, export: a store leaves and comes back."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hansard_store.approvals.records import Proposal
from hansard_store.approvals.service import ApprovalService, open_accountability
from hansard_store.audit.schedule import SealSchedule
from tests.journeys.processes import export as send
from tests.journeys.processes import grpc_exporter, hosting, spans
from tests.web.cli.conftest import Cli

pytestmark = pytest.mark.slow

# What a list shows of a run that does not depend on when and in which order it came.
_DISTINCTIVE = (
    "run_id", "name", "agent", "status", "span_count", "model_calls", "tool_calls", "tokens",
    "cost_usd", "first_input", "last_output", "conversation_id",
)  # fmt: skip


def _runs(cli: Cli, **environment: str) -> list[dict[str, Any]]:
    listed = json.loads(cli("runs", "list", "--json", **environment).stdout)["items"]
    distinctive = [{name: run[name] for name in _DISTINCTIVE} for run in listed]
    return sorted(distinctive, key=lambda run: str(run["run_id"]))


def _in_spans(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the runs whose content stands in their spans: an export refers to payloads only."""
    return [run for run in runs if run["agent"] != "coding-agent"]


@pytest.mark.parametrize("name", ["copy", "copy.tar.zst"])
def test_a_backup_restored_is_the_same_store(
    name: str, anywhere: Cli, demo_data: Path, tmp_path: Path
) -> None:
    backup, restored = tmp_path / name, tmp_path / "restored"

    made = anywhere("backup", str(backup), HANSARD_DATA=str(demo_data))
    put = anywhere("restore", str(backup), "--data", str(restored))

    assert made.exit_code == 0, made.output
    assert "140 spans" in made.stdout
    assert put.exit_code == 0, put.output
    assert _runs(anywhere, HANSARD_DATA=str(restored)) == _runs(
        anywhere, HANSARD_DATA=str(demo_data)
    )
    assert (restored / "key").read_bytes() == (demo_data / "key").read_bytes()
    assert anywhere("verify", HANSARD_DATA=str(restored)).exit_code == 0


def test_a_running_server_is_backed_up(anywhere: Cli, tmp_path: Path) -> None:
    with hosting(tmp_path / "data") as server:
        assert send(grpc_exporter(server), spans(30))

        made = anywhere("backup", str(tmp_path / "copy"), HANSARD_DATA=str(server.data))

        assert made.exit_code == 0, made.output
        assert "30 spans" in made.stdout


def test_the_key_can_be_left_out(anywhere: Cli, demo_data: Path, tmp_path: Path) -> None:
    backup = tmp_path / "copy"

    made = anywhere("backup", str(backup), "--no-key", "--json", HANSARD_DATA=str(demo_data))

    assert json.loads(made.stdout)["has_key"] is False
    assert not (backup / "key").exists()


def test_nothing_is_overwritten(anywhere: Cli, demo_data: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("dear diary")

    made = anywhere("backup", str(tmp_path / "mine"), HANSARD_DATA=str(demo_data))
    put = anywhere("restore", str(tmp_path / "nothing"), "--data", str(demo_data))

    assert (made.exit_code, put.exit_code) == (1, 1)
    assert len(made.stderr.splitlines()) == len(put.stderr.splitlines()) == 1
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["diary.txt"]


@pytest.mark.covers("CO-17")
def test_an_export_imported_makes_an_equal_store(
    anywhere: Cli, demo_data: Path, tmp_path: Path
) -> None:
    everything, other = tmp_path / "all.jsonl", str(tmp_path / "other")

    assert anywhere("export", "-o", str(everything), HANSARD_DATA=str(demo_data)).exit_code == 0
    packed = tmp_path / "all.jsonl.gz"
    packed.write_bytes(gzip.compress(everything.read_bytes()))
    imported = anywhere("import", str(packed), "--json", HANSARD_DATA=other)

    assert imported.exit_code == 0, imported.output
    assert json.loads(imported.stdout)["accepted"] == 144
    came, went = _runs(anywhere, HANSARD_DATA=other), _runs(anywhere, HANSARD_DATA=str(demo_data))
    assert _in_spans(came) == _in_spans(went)
    assert [run["run_id"] for run in came] == [run["run_id"] for run in went]
    again = anywhere("export", HANSARD_DATA=other).stdout
    assert sorted(_spans(again)) == sorted(_spans(everything.read_text()))


def _spans(lines: str) -> list[str]:
    return [
        json.dumps(span, sort_keys=True)
        for line in lines.splitlines()
        for resource in json.loads(line).get("resourceSpans", ())
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def test_one_exported_run_is_imported_alone(anywhere: Cli, demo_data: Path, tmp_path: Path) -> None:
    source, other = str(demo_data), str(tmp_path / "other")
    run = _in_spans(_runs(anywhere, HANSARD_DATA=source))[0]
    for form in ("otlp-json", "otlp-proto", "jsonl"):
        file = str(tmp_path / f"run.{form}")
        anywhere("runs", "export", run["run_id"], "--format", form, "-o", file, HANSARD_DATA=source)

        assert anywhere("import", file, HANSARD_DATA=other).exit_code == 0

        assert _runs(anywhere, HANSARD_DATA=other) == [run]


def test_what_cannot_be_read_is_told_and_keeps_nothing_else_out(
    anywhere: Cli, demo_data: Path, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.json"
    anywhere("export", "-o", str(good), HANSARD_DATA=str(demo_data))
    bad.write_text("dear diary")

    ended = anywhere("import", str(bad), str(good), HANSARD_DATA=str(tmp_path / "other"))

    assert ended.exit_code == 1
    assert "bad.json" in ended.stderr
    assert "144 items" in ended.stdout


def test_a_file_that_is_not_there_is_wrong_use(anywhere: Cli, tmp_path: Path) -> None:
    ended = anywhere("import", str(tmp_path / "nowhere.json"), HANSARD_DATA=str(tmp_path))

    assert ended.exit_code == 2
    assert "nowhere.json" in ended.stderr


def test_a_store_that_was_put_back_runs_nothing_until_its_head_is_accepted(
    anywhere: Cli, tmp_path: Path
) -> None:
    data, copies = tmp_path / "data", tmp_path / "state"
    where = {"HANSARD_DATA": str(data), "HANSARD_HEADS_COPY": str(copies)}
    with open_accountability(data) as desk:
        made = desk.propose(Proposal("wire", {"kroner": 100})).approval.approval_id
    assert anywhere("backup", str(tmp_path / "friday"), **where).exit_code == 0
    assert anywhere("approvals", "approve", made, "--by", "ann", **where).exit_code == 0
    (data / "hansard.db").unlink()
    for left in data.glob("hansard.db-*"):
        left.unlink()
    shutil.copy(tmp_path / "friday" / "hansard.db", data / "hansard.db")

    found = anywhere("verify", **where)
    accepted = anywhere("events", "accept-head", "--note", "the disk died", "--by", "ann", **where)

    assert found.exit_code == 1
    assert "audit log: event 2: is missing: the log ends at 1" in found.stdout
    assert accepted.exit_code == 0, accepted.output
    assert "given up" in accepted.stdout
    listed = json.loads(anywhere("events", "list", "--json", **where).stdout)["items"]
    assert [one["type"] for one in listed] == ["head.accepted", "action.created"]
    assert anywhere("verify", **where).exit_code == 0


def test_a_backup_that_is_restored_may_run_what_it_holds_and_says_so_in_its_log(
    anywhere: Cli, tmp_path: Path
) -> None:
    data, copies, restored = tmp_path / "data", tmp_path / "state", tmp_path / "restored"
    where = {"HANSARD_DATA": str(data), "HANSARD_HEADS_COPY": str(copies)}
    with open_accountability(data) as desk:
        made = desk.propose(Proposal("wire", {"kroner": 100})).approval.approval_id
    assert anywhere("backup", str(tmp_path / "friday"), **where).exit_code == 0
    assert anywhere("approvals", "approve", made, "--by", "ann", **where).exit_code == 0

    put = anywhere("restore", str(tmp_path / "friday"), **where | {"HANSARD_DATA": str(restored)})

    assert put.exit_code == 0, put.output
    with ApprovalService(restored, heads_copy=str(copies)) as desk:
        assert [one.type for one in desk.events()] == ["head.accepted", "action.created"]
        desk.approve(made, by="ann")
        desk.claim(made)
    assert anywhere("verify", **where).exit_code == 0  # the first one is as sound as before


def test_an_export_of_events_has_the_seals_that_lists_leave_out(
    anywhere: Cli, tmp_path: Path
) -> None:
    with open_accountability(tmp_path / "data") as desk:
        desk.propose(Proposal("wire", {"kroner": 100}))
        SealSchedule(desk.seal).end()
    where = {"HANSARD_DATA": str(tmp_path / "data")}

    listed = json.loads(anywhere("events", "list", "--json", **where).stdout)["items"]
    exported = [
        json.loads(line) for line in anywhere("events", "export", **where).stdout.split("\n")[:-1]
    ]

    assert [one["type"] for one in listed] == ["action.created"]
    assert [one["type"] for one in exported] == ["record.sealed", "action.created"]
