"""The six subsystems: the page maps each to a module and a test, and every page answers."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.web.html import parse
from tests.web.sidecar.conftest import House
from tests.web.sidecar.test_sidecar_models import QUESTION, SCRIPT, to_compile

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(
    r"^\| ([\w ]+) \| `(hansard_[\w.]+)` \| \[`(test_\w+)`\]\((\S+)\) \|$", re.MULTILINE
)
SUBSYSTEMS = [
    "context compiler", "recorder", "memory system", "policy engine",
    "provider and tool adapters", "dashboard and replay",
]  # fmt: skip


@pytest.mark.covers("EX-17")
def test_each_subsystem_is_a_module_that_a_test_walks_through() -> None:
    rows = ROW.findall((DOCS / "architecture.md").read_text(encoding="utf-8"))

    assert [name for name, *_ in rows] == SUBSYSTEMS
    for _, module, test, path in rows:
        assert import_module(module)
        assert f"def {test}(" in (DOCS / path).read_text(encoding="utf-8"), test


@pytest.mark.covers("EX-17", "EX-05")
def test_every_page_answers(tmp_path: Path) -> None:
    """Runs, steps, differences, receipts, memory, approvals, and a replay with its controls."""
    house = House(tmp_path / "data")
    agent = house.serve()
    run_id = agent.start()
    compiled = agent.tell("/v1/compile", to_compile(run_id, QUESTION))
    asked = {"run_id": run_id, "compilation_id": compiled["compilation_id"], "script": SCRIPT}
    call = agent.tell("/v1/model/call", asked)["step_id"]
    agent.tell(f"/v1/runs/{run_id}/end")
    replay = agent.tell("/v1/replay", {"step_id": call, "script": SCRIPT, "wait_s": 30})

    addresses = ["/", f"/runs/{run_id}", f"/steps/{call}", f"/steps/{call}/context", "/receipts"]
    addresses += [f"/diff/{run_id}/{replay['run_id']}", f"/replay/{call}", "/memory", "/approvals"]
    addresses += [f"/replays/{replay['replay_id']}", "/events", "/conversations", "/transcripts"]
    addresses += ["/search?q=refund", "/usage", "/health"]
    pages = {address: agent.client.get(address) for address in addresses}
    house.stop()

    assert [address for address, one in pages.items() if one.status_code != 200] == []
    assert run_id[:8] in pages["/"].text
    assert "Refund order 7" in pages[f"/steps/{call}/context"].text
    assert parse(pages[f"/replay/{call}"].text).one("main").all("form")
