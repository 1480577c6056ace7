"""docs/tasks.md: every rule, state and route is listed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hansard_store.detection.rules import RULES
from hansard_store.detection.signatures import signature_of
from hansard_store.tasks.rows import STATES
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from hansard_web.tasks.api import router
from tests.signing import People
from tests.store.empty import empty_store

PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")


@pytest.mark.covers("DI-11")
def test_every_rule_is_told_with_its_level_threshold_and_window() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| .+ \| (.+) \|$", PAGE, re.MULTILINE)

    assert rows == [(rule.name, rule.level, rule.numbers) for rule in RULES]


def test_every_state_and_route_is_listed() -> None:
    for state in STATES:
        assert f"| `{state}` |" in PAGE
    for route in router.routes:
        assert f"{next(iter(route.methods))} {route.path}" in PAGE  # type: ignore[attr-defined]  # each an APIRoute


def test_the_errors_that_it_calls_one_are_one() -> None:
    told = re.findall(r"`((?:no such file|permission denied): .+?)`", PAGE)

    first, second, third = map(signature_of, told)
    assert first == second != third
    assert signature_of("user bob is unknown") != signature_of("user ana is unknown")


def test_the_request_that_it_shows_is_understood(tmp_path: Path) -> None:
    found = re.search(r"4318(\S+) -H .+ -d '(\{.+?\})'", PAGE, re.DOTALL)
    assert found
    folder = empty_store(tmp_path / "data")
    app = create_app(folder, None, WebSettings())

    with TestClient(app, base_url="http://localhost") as client:
        client.auth = People(folder)
        answer = client.post(found[1], json=json.loads(found[2]))

    assert answer.status_code == 404  # no task is there: what it says was understood
