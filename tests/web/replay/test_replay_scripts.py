"""A server that was told the script of the scripted model: whoever asks brings none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hansard_compiler.errors import ConfigError
from hansard_web.app.config import WebSettings, script_in
from tests.web.replay.replay_pages import Pages
from tests.web.replay.stage import SCRIPT, staging


def test_a_scripted_call_is_sent_again_from_its_page_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with staging(tmp_path / "data", monkeypatch) as stage:
        step_id = stage.compiled_call()
        pages = Pages(stage)
        assert pages.get(f"/replay/{step_id}").all("textarea", name="script")

        stage.serve(WebSettings(script=SCRIPT))

        assert not pages.get(f"/replay/{step_id}").all("textarea", name="script")
        made = pages.send(step_id, act="exact")
        assert "the same bytes went out" in made.text
        assert "The almanac says: in the post." in made.text
        own = {"hansard_script": 1, "answers": [], "otherwise": {"say": "Another script."}}
        told = stage.replay(step_id, script=own)
        assert told["comparison"]["output"]["is_empty"] is False


def test_a_scripted_fork_goes_on_from_its_page_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling = {
        "hansard_script": 1,
        "answers": [{"when": {"any_contains": "it is at sea"}, "say": "At sea."}],
        "otherwise": {"call": [{"name": "get", "arguments": {"k": 9}}]},
    }
    with staging(tmp_path / "data", monkeypatch) as stage:
        told = stage.replay(stage.compiled_call(), mode="forward", script=calling)
        pages = Pages(stage)
        path = f"/replays/{told['replay_id']}"
        assert pages.get(path).all("textarea", name="script")

        stage.serve(WebSettings(script=calling))

        assert pages.get(path).all("form", class_="go-on")
        assert not pages.get(path).all("textarea", name="script")
        typed = {"turns": "1", "usd": "1", "result.0": "it is at sea"}
        assert pages.post(f"{path}/continue", **typed).status_code == 303
        stage.replays.wait(told["replay_id"], seconds=30)
        assert pages.get(path).one(id="replay-result")["data-state"] == "done"


def test_a_script_is_read_once_at_the_start_or_refused_by_name(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(SCRIPT), encoding="utf-8")
    bad.write_text("{", encoding="utf-8")

    assert script_in(None) is None
    assert script_in(good) == SCRIPT
    for path in (bad, tmp_path / "none.json"):
        with pytest.raises(ConfigError, match=path.name):
            script_in(path)
