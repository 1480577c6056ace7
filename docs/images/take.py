"""Takes the README's picture again: runs the demo and photographs a run of it.

.venv/bin/python docs/images/take.py
"""

from __future__ import annotations

import json
import sys
import tempfile
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from hansard_web.config import load_config  # noqa: E402
from hansard_web.demo.story import run_programs  # noqa: E402
from hansard_web.presence import Doors  # noqa: E402
from hansard_web.server import running  # noqa: E402
from tests.browser import LAUNCH_ARGUMENTS, chromium_path  # noqa: E402

SIZE = {"width": 1440, "height": 860}


def main() -> None:
    """Run the agents against a fresh server, and photograph the longest run with a step open."""
    with (
        tempfile.TemporaryDirectory() as data,
        running(load_config({"data": data, "http_port": "0", "grpc_port": "0"}, {})) as server,
        sync_playwright() as playwright,
    ):
        run_programs(server.doors, on_run=lambda _: None)
        chromium = playwright.chromium.launch(
            executable_path=chromium_path(), args=list(LAUNCH_ARGUMENTS)
        )
        page = chromium.new_page(viewport=SIZE, color_scheme="light")
        photograph(page, server.doors)
        chromium.close()


def photograph(page: Page, doors: Doors) -> None:
    """Open the run of the research assistant, its last answer selected."""
    with urllib.request.urlopen(f"{doors.http}/v1/runs?agent=research-assistant") as answer:
        runs = json.load(answer)["items"]
    longest = max(runs, key=lambda run: int(run["step_count"]))
    page.goto(f"{doors.http}/runs/{longest['run_id']}")
    page.get_by_text("chat claude-sonnet-4-5").last.click()
    page.wait_for_timeout(1500)  # the network is never idle: the page follows the run
    page.screenshot(path=HERE / "run.png")


if __name__ == "__main__":
    main()
