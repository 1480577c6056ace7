"""The Chromium that browser tests drive: found, or installed, or asked for in one line.

Run as a program it makes sure that there is one: `python tests/browser.py`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LAUNCH_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


@cache
def chromium_path() -> str | None:
    """Return the Chromium to use: $HANSARD_CHROMIUM, the system's, else Playwright's own."""
    chosen = os.environ.get("HANSARD_CHROMIUM")
    found = chosen or next(filter(None, map(shutil.which, NAMES)), None)
    if found:
        return found
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def main() -> int:
    """Return 0 when there is a Chromium now, 1 with one line on stderr when there is none."""
    if chromium_path() is None:
        for install in _ways_to_install():
            if subprocess.run(install, check=False, stdout=subprocess.DEVNULL).returncode == 0:
                chromium_path.cache_clear()
                if chromium_path() is not None:
                    break
    if chromium_path() is None:
        sys.stderr.write(
            "no Chromium: install one (apt-get install chromium, or"
            " python -m playwright install chromium) or name it in HANSARD_CHROMIUM\n"
        )
        return 1
    return 0


def _ways_to_install() -> list[list[str]]:
    ways = []
    if os.geteuid() == 0 and shutil.which("apt-get"):
        ways.append(["sh", "-c", "apt-get update -q && apt-get install -q -y chromium"])
    ways.append([sys.executable, "-m", "playwright", "install", "chromium"])
    return ways


if __name__ == "__main__":
    raise SystemExit(main())
