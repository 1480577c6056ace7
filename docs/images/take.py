"""Takes the README's pictures again: plays the demo and photographs what it left.

.venv/bin/python docs/images/take.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from hansard_web.app.config import load_config  # noqa: E402
from hansard_web.app.server import running  # noqa: E402
from hansard_web.demo.coding.coder import SCRIPT  # noqa: E402
from hansard_web.demo.coding.golden import Golden, play  # noqa: E402
from hansard_web.demo.coding.reviewer import person_at  # noqa: E402
from hansard_web.demo.coding.settings import DemoSettings  # noqa: E402
from hansard_web.demo.story import run_programs  # noqa: E402
from tests.browser import LAUNCH_ARGUMENTS, chromium_path  # noqa: E402

SIZE = {"width": 1440, "height": 860}


def main() -> None:
    """Play the demo against a fresh server, and photograph the pages that the README shows."""
    endpoints = {"http_port": "0", "grpc_port": "0", "script": str(SCRIPT)}
    with (
        tempfile.TemporaryDirectory() as folder,
        running(load_config({**endpoints, "data": folder}, {})) as server,
        sync_playwright() as playwright,
    ):
        run_programs(server.endpoints)
        rosa = person_at(server.endpoints)
        settings = DemoSettings(Path(folder) / "repositories")
        golden = play(server.endpoints, settings, lambda _: None, token=rosa.token)
        chromium = playwright.chromium.launch(
            executable_path=chromium_path(), args=list(LAUNCH_ARGUMENTS)
        )
        page = chromium.new_page(viewport=SIZE, color_scheme="light")
        for name, path in _views(golden).items():
            page.goto(server.endpoints.http + path)
            _photograph(page, name)
        chromium.close()


def _views(golden: Golden) -> dict[str, str]:
    mutated = golden.mutated["step_ids"][0]
    return {
        "run": f"/runs/{golden.first.run_id}?span={golden.bad.partition('-')[2]}",
        "context": f"/steps/{golden.bad}?tab=context&decision=exclude&item=CONVENTIONS.md",
        "compare": f"/diff/{golden.bad}/{mutated}",
        "approval": f"/approvals/{golden.approval_id}",
    }


def _photograph(page: Page, name: str) -> None:
    page.wait_for_timeout(1500)  # the network is never idle: pages follow what happens
    page.screenshot(path=HERE / f"{name}.png")


if __name__ == "__main__":
    main()
