"""`hansard replay` and `hansard export --recipe`: the same replays, from a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hansard_store.database.data_folder import DataFolder
from hansard_web.cli.transfer import export
from hansard_web.replay_page.cli import replay
from tests.instrumentation.clients.asking import RESPONSES
from tests.instrumentation.clients.provider import json_reply
from tests.web.replay.stage import SCRIPT, Stage


def run(stage: Stage, *arguments: str, data: Path | None = None) -> Result:
    return CliRunner().invoke(
        replay, [*arguments, "--data", str(data or stage.folder.path)], catch_exceptions=False
    )


@pytest.mark.covers("RP-01")
def test_the_command_makes_the_same_replay_as_the_api(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")

    done = run(stage, step_id, "--yes", "--json", "--notes", "to be sure")

    told = json.loads(done.stdout)
    assert done.exit_code == 0
    assert (told["state"], told["same_request"]) == ("done", True)
    assert told["user_notes"] == "to be sure"
    assert stage.get(f"/v1/replay/{told['replay_id']}")["step_ids"] == told["step_ids"]


def test_a_preview_sends_nothing_and_says_what_it_would_cost(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")
    asked = len(stage.provider.received)

    done = run(stage, step_id, "--budget", "400", "--remove", "almanac", "--preview")

    assert done.exit_code == 0
    assert "almanac: excluded" in done.stdout
    assert "about $" in done.stdout or "price list" in done.stdout
    assert len(stage.provider.received) == asked


def test_without_a_terminal_nothing_is_sent_unless_yes_is_said(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")
    asked = len(stage.provider.received)

    done = run(stage, step_id)

    assert done.exit_code == 2
    assert "--yes" in done.stderr
    assert len(stage.provider.received) == asked


def test_check_exits_1_when_the_answer_differs(stage: Stage) -> None:
    step_id = stage.compiled_call("openai_compatible")
    address = ("--model-server", f"{stage.provider.address}/v1")
    same = run(stage, step_id, "--yes", "--check", *address)
    words = {"role": "assistant", "content": "Something else."}
    other = {"choices": [{"index": 0, "finish_reason": "stop", "message": words}]}
    stage.provider.replies.append(json_reply(other))

    different = run(stage, step_id, "--yes", "--check", *address)

    assert (same.exit_code, different.exit_code) == (0, 1)
    assert "the answer is the recorded one" in same.stdout
    assert "{+Something else.+}" in different.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--remove", "nothing"), "'nothing' is no candidate"),
        (("--set", "colour=red"), "--set colour"),
        (("--weights", "relevance=much"), "is no number"),
        (("--change", "{"), "--change is not JSON"),
        (("--exact", "--budget", "3"), "--exact changes nothing"),
        (("--n", "0"), "n: "),
    ],
)
def test_what_cannot_be_meant_exits_2_with_one_line(
    arguments: tuple[str, ...], told: str, stage: Stage
) -> None:
    step_id = stage.compiled_call()

    done = run(stage, step_id, "--recorded", *arguments)

    assert done.exit_code == 2
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 3


@pytest.mark.covers("RC-18")
def test_a_step_carried_in_one_file_replays_in_another_store(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "step.json"
    elsewhere = DataFolder(tmp_path / "elsewhere")  # nothing is there
    for step_id in (stage.compiled_call("anthropic"), stage.http_call(RESPONSES)):
        stage.provider.received.clear()
        made = CliRunner().invoke(
            export,
            ["--recipe", step_id, "-o", str(file), "--data", str(stage.folder.path)],
            catch_exceptions=False,
        )
        assert made.exit_code == 0

        done = run(stage, str(file), "--yes", "--json", data=elsewhere.path)

        told: dict[str, Any] = json.loads(done.stdout)
        [sent] = stage.provider.received
        assert (told["state"], told["same_request"]) == ("done", True)
        assert told["source"]["step_id"] == step_id
        request_ref = stage.step(step_id)["attributes"]["hansard.request.ref"]
        assert sent.body == stage.payload(request_ref)
        offline = run(stage, str(file), "--recorded", "--check", data=elsewhere.path)
        assert offline.exit_code == 0


def test_a_file_that_is_no_recipe_is_refused(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text(json.dumps(SCRIPT))

    done = run(stage, str(file), "--recorded")

    assert done.exit_code == 2
    assert "is no recipe file" in done.stderr
