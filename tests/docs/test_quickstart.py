"""The quickstart, followed: its marked blocks are run in order against a fresh server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journeys.processes import environment, serving

ROOT = Path(__file__).parent.parent.parent
_BLOCK = re.compile(r"<!-- run -->\n```sh\n(.*?)```", re.DOTALL)


def blocks() -> list[str]:
    return _BLOCK.findall((ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.covers("DC-01", "CO-02", "AC-10")
def test_every_marked_command_works_in_the_order_given(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        port = server.http.rpartition(":")[2]
        script = "set -e\n" + "\n".join(blocks()).replace("127.0.0.1:4318", f"127.0.0.1:{port}")
        for name in ("examples", "constraints.txt"):
            (tmp_path / name).symlink_to(ROOT / name)
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"

        ended = subprocess.run(
            ["sh", "-c", script],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(PATH=path, HANSARD_DATA=str(tmp_path / "data")),
            timeout=120,
        )

        page = server.get("/").decode()

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "sent, stored and read back" in ended.stdout
    assert "In Lisbon it is sunny, 24 degrees." in ended.stdout
    assert "invoke_agent weather" in ended.stdout
    assert "first words" in ended.stdout
    assert (tmp_path / "first-words.json").stat().st_size > 100
    [hidden] = re.findall(
        r"\*(\d+ other runs? hidden)\*", (ROOT / "docs" / "quickstart.md").read_text()
    )
    assert hidden in page


def test_the_quickstart_has_blocks_to_run() -> None:
    assert len(blocks()) >= 5
