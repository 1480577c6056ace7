"""`hansard.replay`: from a program, by the server or in its own store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hansard
from hansard._config.settings import load_settings
from hansard._runtime import recorder as _state
from hansard.errors import ReplayUnavailable
from hansard_compiler.errors import NotFoundError
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from tests.web.conftest import Served
from tests.web.replay.stage import SCRIPT, Stage


@pytest.fixture(scope="module")
def address(stage: Stage) -> Iterator[str]:
    with Served(stage.app) as server:
        yield server.url


@pytest.fixture
def told(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A program that was told of the server."""
    before = _state.settings()
    _state.remember(load_settings({"endpoint": address}))
    yield
    _state.remember(before)


@pytest.mark.covers("RP-01")
@pytest.mark.usefixtures("told")
def test_a_program_asks_the_server_for_the_same_replay(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")

    again = hansard.replay(step_id, n=2, notes="twice")

    assert again.is_done
    assert again.is_same_request
    assert again.spread["different"] == 1
    assert stage.get(f"/v1/replay/{again.replay_id}")["user_notes"] == "twice"


@pytest.mark.usefixtures("told")
def test_a_program_names_the_common_changes_by_name(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")

    again = hansard.replay(
        step_id,
        model="gpt-6-mini",
        token_budget=500,
        weights={"importance": 2},
        policy=[],
        remove="almanac",
        mutations=[{"op": "add_message", "role": "user", "text": "Be quick."}],
    )

    ops = [one["op"] for one in again.mutations]
    assert ops == [
        "set_model", "set_budget", "set_weights", "set_policy", "remove_item", "add_message",
    ]  # fmt: skip
    assert "Be quick." in stage.provider.received[-1].body.decode()


@pytest.mark.usefixtures("told")
def test_a_refusal_has_the_same_reason_as_everywhere(stage: Stage) -> None:
    step_id = stage.compiled_call("openai")

    with pytest.raises(NotReplayable) as refused:
        hansard.replay(step_id, remove=["nothing"])
    with pytest.raises(NotFoundError):
        hansard.replay("ff" * 16 + "-" + "ff" * 8)

    assert refused.value.reason is ReplayReason.ITEM_UNKNOWN
    row = stage.get(f"/v1/replay/{refused.value.replay_id}")
    assert (row["state"], row["reason"]) == ("refused", "item_unknown")


def test_without_a_server_it_says_so() -> None:
    before = _state.settings()
    _state.remember(load_settings({"endpoint": "http://127.0.0.1:9"}))
    try:
        with pytest.raises(ReplayUnavailable):
            hansard.replay("0" * 32 + "-" + "1" * 16)
    finally:
        _state.remember(before)


def test_an_answer_is_replayed_in_the_programs_own_store(tmp_path: Path, stage: Stage) -> None:
    hansard.init(embedded=True, data=tmp_path / "own", service_name="clerk")
    try:
        with hansard.start_run("clerk", "support"):
            compiled = hansard.compile_step(
                inputs=["Order 7 is in the post.", {"role": "user", "content": "Where is it?"}],
                model="scripted-1",
                provider=stage.adapter("scripted"),
                token_budget=400,
            )
            answer = hansard.call_model(compiled)

        again = hansard.replay(answer, script=SCRIPT)
        offline = hansard.replay(answer, recorded=True)
    finally:
        hansard.shutdown()

    assert again.is_same_request
    assert again.comparison["output"]["is_empty"]
    assert offline.recorded
