"""hansard transcripts: said, shown, folded, checked, redacted, archived, and looked after."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import click
import pytest
from click.testing import CliRunner, Result

from hansard_store.database.data_folder import DataFolder
from hansard_store.verification.integrity import verify_store
from hansard_web.cli import commands
from tests.instrumentation.transcript_maker import call, result, user
from tests.store.by_hand import triggers_dropped
from tests.store.empty import empty_store

Said = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return empty_store(tmp_path / "data")


@pytest.fixture
def store(folder: DataFolder) -> Said:
    """Run `hansard transcripts …` on an empty store."""
    group = click.Group("hansard")
    commands(group)

    def run(*arguments: str, stdin: str = "", group_name: str = "transcripts") -> Result:
        clean = {"HANSARD_DATA": str(folder.path), "HANSARD_TOKEN": None, "HANSARD_CONFIG": None}
        named = [group_name, *arguments] if group_name else list(arguments)
        return CliRunner().invoke(group, named, env=clean, input=stdin)

    return run


@pytest.fixture
def talk(store: Said) -> Said:
    """A conversation with a rule, a clipped result and an answer."""
    lines = [
        user("Refactor billing. Never touch the public API."),
        call("c1"),
        result("c1", "row\n" * 20_000),
        {"role": "assistant", "content": "Done with the first part."},
    ]
    appended = store("append", "support-42", stdin="\n".join(map(json.dumps, lines)))
    assert appended.exit_code == 0, appended.output
    return store


def told(result: Result) -> Any:
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.stdout)


def test_what_was_said_is_listed_and_shown(talk: Said) -> None:
    talk("append", "support-42", "--text", "go on", "--role", "user")

    shown = talk("show", "support-42").stdout
    body = told(talk("show", "support-42", "--json"))

    assert "support-42" in talk("list").stdout
    assert [one["messages"] for one in told(talk("list", "--json"))["items"]] == [5]
    assert "Never touch the public API." in shown
    assert "find({})" in shown
    assert "left out" in shown  # the mark of the clip
    assert body["items"][-1]["message"]["parts"][0]["text"] == "go on"
    assert told(talk("show", body["conversation_id"], "--json"))["head"] == 4
    assert told(talk("show", "support-42", "--after", "2", "--json"))["items"][0]["position"] == 3


@pytest.mark.covers("TR-27")
def test_a_fold_tells_what_its_summary_lost_and_a_check_exits_1(talk: Said) -> None:
    folded = talk("fold", "support-42", "--summary", "-", stdin="Refactoring of billing goes on.")
    checked = talk("check", "support-42")
    better = talk("check", "support-42", "--summary", "Refactor billing, never touch public API")

    assert folded.exit_code == 0
    assert "1 of 2 constraints and requests are not in the summary" in folded.stdout
    assert "Never touch the public API." in checked.stdout
    assert (checked.exit_code, better.exit_code) == (1, 0)
    assert "folded here" in talk("show", "support-42").stdout
    (front,) = told(talk("show", "support-42", "--active", "--json"))["items"]
    assert front["position"] is None
    assert talk("fold", "support-42", "--summary", "x", "--expected-head", "1").exit_code == 1


@pytest.mark.covers("TR-24", "TR-25")
def test_redactions_and_costs_are_told(talk: Said) -> None:
    redacted = talk("redact", "support-42", "--position", "0", "--reason", "a name")
    cost = talk("cost", "support-42", "--window-tokens", "10000")

    assert "tokens cold" in redacted.stdout
    assert "public API" not in talk("show", "support-42").stdout
    assert "public API" in talk("show", "support-42", "--raw").stdout
    assert "now: " in cost.stdout
    talk("redact", "support-42", "--position", "0", "--reason", "a mistake", "--restore")
    assert "public API" in talk("show", "support-42").stdout


@pytest.mark.covers("TR-23")
def test_sizes_are_told_and_the_folded_part_is_archived(talk: Said, tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    talk("fold", "support-42", "--summary", "billing")
    written = told(talk("archive", "support-42", str(file), "--json"))
    again = talk("archive", "support-42", str(file), "--check")
    stats = told(talk("stats", "support-42", "--json"))

    assert written["last_position"] == 3
    assert written["sha256"] in again.stdout
    assert (stats["archives"], stats["messages"], stats["payload_bytes"]) == (1, 4, 80_000)
    assert "78.1 KiB" in talk("stats", "support-42").stdout
    file.write_text("altered")
    assert talk("archive", "support-42", str(file), "--check").exit_code == 1


@pytest.mark.covers("TR-26")
def test_a_row_that_does_not_decode_is_named_by_every_doctor(
    talk: Said, folder: DataFolder
) -> None:
    assert "4 messages decoded (4 of version 1)" in talk("doctor").stdout
    conversation = told(talk("show", "support-42", "--json"))["conversation_id"]
    damaged = apsw.Connection(str(folder.database))
    with triggers_dropped(damaged):
        damaged.execute("UPDATE transcript_message SET content = '{' WHERE position = 2")
    damaged.close()

    doctor = talk("doctor")
    whole = talk("doctor", "--json", group_name="")

    assert doctor.exit_code == 1
    assert f"{conversation}: the message at position 2 cannot be decoded" in doctor.stdout
    named = [one["text"] for one in told(whole) if one["check"] == "transcripts"]
    assert whole.exit_code == 1
    assert named == [line for line in named if f"{conversation}: the message at position 2" in line]
    assert f"{conversation} 2" in [one.row for one in verify_store(folder).findings]
    assert talk("show", "support-42").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (("show", "nobody"), 1, "no transcript 'nobody'"),
        (("show", "conv_" + "0" * 32), 1, "no conversation"),
        (("stats", "br_" + "0" * 32), 2, "is a sub-agent"),
        (("fold", "support-42"), 2, "Missing option"),
        (("append", "x", "--retention", "metadata_only", "--text", "a"), 1, "keeps no content"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(
    talk: Said, arguments: tuple[str, ...], exit_code: int, words: str
) -> None:
    ended = talk(*arguments)

    assert ended.exit_code == exit_code
    assert words in ended.output


def test_a_line_that_is_no_json_appends_nothing(store: Said) -> None:
    ended = store("append", "support-42", stdin='{"role": "user", "content": "a"}\n{')

    assert (ended.exit_code, "line 2" in ended.output) == (2, True)
    assert told(store("list", "--json"))["items"] == []
