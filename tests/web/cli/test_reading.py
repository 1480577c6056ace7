"""runs, steps, search, usage: what they print for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from hansard_compiler.models.runs import RunRecord, StepRecord
from tests.web.cli.conftest import Cli
from tests.web.makers import RunMaker

pytestmark = pytest.mark.slow


def _json(cli: Cli, *arguments: str) -> Any:
    ended = cli(*arguments, "--json")
    assert ended.exit_code == 0, ended.output
    return json.loads(ended.stdout)


def _research_run(cli: Cli) -> str:
    runs = _json(cli, "runs", "list", "--agent", "research-assistant")["items"]
    return str(max(runs, key=lambda run: run["step_count"])["run_id"])


def test_runs_are_listed_newest_first_a_line_each(cli: Cli) -> None:
    ended = cli("runs", "list")

    heading, *lines = ended.stdout.splitlines()
    assert heading.split()[:3] == ["RUN", "STARTED", "(UTC)"]
    assert len(lines) == 17
    assert sum(" heartbeat " in line for line in lines) == 1
    assert sum("invoke_agent support-desk" in line for line in lines) == 6


def test_every_filter_of_the_api_is_an_option(cli: Cli) -> None:
    listed = {
        option: [run["agent"] for run in _json(cli, "runs", "list", *option.split())["items"]]
        for option in (
            "--status error",
            "--agent release-notes",
            "--model claude-sonnet-4-5",
            "--tool issue_refund",
            "--service research",
            "--conversation order-b-2077",
            "--user tomas",
            "--attribute gen_ai.tool.name:search_archive",
            "--q crack",
            "--min-duration-ms 2000",
            "--until 2001-01-01",
        )
    }

    assert listed["--status error"] == ["inventory-sync"]
    assert listed["--agent release-notes"] == ["release-notes"]
    assert set(listed["--model claude-sonnet-4-5"]) == {"research-assistant"}
    assert listed["--tool issue_refund"] == ["support-desk"]
    assert listed["--service research"] == ["research-assistant"] * 2
    assert listed["--conversation order-b-2077"] == ["support-desk"] * 2
    assert listed["--user tomas"] == ["support-desk"] * 2
    assert listed["--attribute gen_ai.tool.name:search_archive"] == ["research-assistant"] * 2
    assert "support-desk" in listed["--q crack"]
    assert "research-assistant" in listed["--min-duration-ms 2000"]
    assert listed["--until 2001-01-01"] == []


def test_pages_join_to_the_whole_list(cli: Cli) -> None:
    whole = [run["run_id"] for run in _json(cli, "runs", "list")["items"]]
    joined: list[str] = []
    page = _json(cli, "runs", "list", "--limit", "3")
    joined += [run["run_id"] for run in page["items"]]
    while page["next_cursor"]:
        page = _json(cli, "runs", "list", "--limit", "3", "--cursor", page["next_cursor"])
        joined += [run["run_id"] for run in page["items"]]

    assert joined == whole


def test_a_run_is_shown_as_a_tree_by_the_first_digits_of_its_id(cli: Cli) -> None:
    run_id = _research_run(cli)

    ended = cli("runs", "show", run_id[:10])

    assert run_id in ended.stdout
    lines = ended.stdout.splitlines()
    inner = next(line for line in lines if "invoke_agent fact-checker" in line)
    assert inner.startswith("    invoke_agent")


def test_the_ids_of_a_run_s_steps_are_what_other_commands_take(cli: Cli) -> None:
    run_id = _research_run(cli)
    steps = _json(cli, "runs", "show", run_id)["steps"]

    told = cli("runs", "show", run_id).stdout
    shown = [row.split()[-1] for row in told.splitlines()[-len(steps) :]]

    assert [step["step_id"] for step in steps] == [
        _json(cli, "steps", "show", step_id)["step_id"] for step_id in shown
    ]
    assert max(map(len, shown)) < len(steps[0]["step_id"])
    assert cli("diff", shown[0], shown[1]).exit_code == 1  # two steps, which differ
    assert cli("annotations", "list", shown[0]).exit_code == 0


def test_ids_are_whole_where_a_beginning_is_of_many(anywhere: Cli, tmp_path: Path) -> None:
    maker = RunMaker(tmp_path / "data")
    traces = [f"0123456789{number:022x}" for number in (1, 2)]
    runs = [maker.run(trace=trace, tool="find") for trace in traces]
    maker.close()
    data = {"HANSARD_DATA": str(maker.folder.path)}

    told = anywhere("runs", "show", runs[1], **data).stdout
    last = told.splitlines()[-1].split()[-1]

    assert runs == traces
    assert last.startswith(f"{runs[1]}-")
    assert anywhere("steps", "show", last, **data).exit_code == 0


def test_a_step_is_shown_with_what_was_said(cli: Cli) -> None:
    steps = _json(cli, "runs", "show", _research_run(cli))["steps"]
    call = next(step for step in steps if step["role"] == "llm")

    ended = cli("steps", "show", call["step_id"])

    assert "claude-sonnet-4-5" in ended.stdout
    assert "Since when is there an official report" in ended.stdout
    assert "gen_ai.request.model = claude-sonnet-4-5" in ended.stdout


def test_a_step_is_given_back_as_it_came_in(cli: Cli) -> None:
    step = _json(cli, "runs", "show", _research_run(cli))["steps"][0]

    raw = json.loads(cli("steps", "show", step["step_id"], "--raw").stdout)

    span = raw["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert span["spanId"] == step["span_id"]
    assert span["name"] == "invoke_agent research-assistant"


@pytest.mark.covers("DM-16", "DM-17")
def test_a_run_is_printed_as_its_records_in_the_order_its_steps_began(cli: Cli) -> None:
    run_id = _research_run(cli)
    shown = _json(cli, "runs", "show", run_id)

    first, *lines = cli("runs", "record", run_id[:10]).stdout.splitlines()

    run = RunRecord.model_validate_json(first)
    steps = [StepRecord.model_validate_json(one) for one in lines]
    assert (run.run_id, run.agent_name, run.status) == (run_id, shown["agent"], "completed")
    assert [one.step_index for one in steps] == list(range(shown["span_count"]))
    assert [one.started_at for one in steps] == sorted(one.started_at for one in steps)
    assert {one.step_id for one in steps} == {one["step_id"] for one in shown["steps"]}


def test_an_exported_run_holds_every_span(cli: Cli, tmp_path: Path) -> None:
    run_id = _research_run(cli)
    target = tmp_path / "run.json"

    assert cli("runs", "export", run_id, "-o", str(target)).exit_code == 0

    exported = json.loads(target.read_text())
    spans = [
        span
        for resource in exported["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    assert len(spans) == _json(cli, "runs", "show", run_id)["span_count"]


def test_search_finds_what_was_said_and_where(cli: Cli) -> None:
    hits = _json(cli, "search", '"crack from top to bottom"')["items"]
    shown = cli("search", '"crack from top to bottom"').stdout

    assert hits[0]["message_role"] == "user"
    assert hits[0]["step_id"] in shown
    assert "The tank has a crack" in shown


def test_usage_by_model_adds_up_to_usage_by_day(cli: Cli) -> None:
    by_day = _json(cli, "usage")["items"]
    by_model = _json(cli, "usage", "--by", "model")["items"]

    for name in ("input", "output", "cache_read"):
        days = sum(row["tokens"][name] for row in by_day)
        assert days == sum(row["tokens"][name] or 0 for row in by_model if row["tokens"])
    assert "gpt-4o-mini" in cli("usage", "--by", "model").stdout


# ---- wrong use


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["runs", "show", "0123456789"], "no run '0123456789'"),
        (["runs", "show", "eb65"], "no run 'eb65'; the beginning of an id needs 8 digits or more"),
        (["approvals", "show", "eb65"], "needs 8 digits or more"),
        (["memory", "show", "eb65"], "needs 8 digits or more"),
        (["steps", "show", "f" * 32 + "-" + "f" * 16], "no step"),
        (["steps", "show", "f" * 16], "named by its run and its span"),
        (["runs", "list", "--limit", "501"], "1 to 500"),
        (["runs", "list", "--status", "great"], "known are ok, error"),
        (["runs", "list", "--cursor", "nonsense"], "not a cursor"),
        (["runs", "list", "--since", "yesterday"], "2026-01-31"),
        (["search", '"open'], "close it"),
        (["runs", "export", "0123456789"], "no run"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_1(
    arguments: list[str], said: str, cli: Cli
) -> None:
    ended = cli(*arguments)

    assert ended.exit_code == 1
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stdout == ""


def test_no_store_is_said_with_what_to_do(anywhere: Cli, tmp_path: Path) -> None:
    ended = anywhere("runs", "list", "--data", str(tmp_path))

    assert ended.exit_code == 1
    assert "hansard serve" in ended.stderr
    assert not list(tmp_path.iterdir())


def test_a_newer_store_is_refused_in_words(anywhere: Cli, tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "hansard.db"))
    connection.pragma("user_version", 9_999)
    connection.close()

    ended = anywhere("runs", "list", "--data", str(tmp_path))

    assert ended.exit_code == 1
    assert "install a newer hansard" in ended.stderr


def test_a_file_that_is_no_database_is_refused_in_words(anywhere: Cli, tmp_path: Path) -> None:
    (tmp_path / "hansard.db").write_bytes(b"dear diary, " * 500)

    ended = anywhere("runs", "list", "--data", str(tmp_path))

    assert ended.exit_code == 1
    assert "no SQLite database" in ended.stderr


def test_recorded_control_characters_do_not_reach_the_terminal() -> None:
    from hansard_web.cli.tables import plain

    assert plain("a\x1b[2Jb\x07c\u202ed").plain == "a\\x1b[2Jb\\x07c\\u202ed"
