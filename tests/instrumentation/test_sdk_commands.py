"""Commands of the SDK work where the server is not installed; the server's say what is missing."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from hansard._export.dropped import Losses, Sender
from hansard._export.spool import FOLDER, Spool
from tests.journeys.processes import environment

pytestmark = pytest.mark.slow

_WITHOUT_SERVER = """
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("apsw", "fastapi", "rich", "uvicorn", "orjson"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hide())
from hansard._cli.main import main
main()
"""


def _hansard(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT_SERVER, *arguments],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=240,
    )


def test_the_spool_is_listed_and_flushed_without_the_server(tmp_path: Path) -> None:
    for verb in ("list", "flush"):
        ended = _hansard("spool", verb, "--data", str(tmp_path))

        assert (ended.returncode, ended.stdout) == (0, "")


def test_the_spool_counts_payloads_and_removes_them(tmp_path: Path) -> None:
    spool = Spool(tmp_path / FOLDER, max_bytes=1 << 20, losses=Losses(Sender("agent", "1")))
    spool.add_payload("sha256:" + hashlib.sha256(b"said").hexdigest(), b"said", media_type="a/b")
    spool.leave()

    listed = _hansard("spool", "list", "--json", "--data", str(tmp_path))
    dropped = _hansard("spool", "drop", "--yes", "--data", str(tmp_path))

    [process] = json.loads(listed.stdout)["processes"]
    assert (process["payloads"], process["spans"]) == (1, 0)
    assert "1 spans, log records and payloads removed" in dropped.stderr
    assert list(tmp_path.rglob("*.pack")) == []


def test_a_command_of_the_server_says_in_one_line_what_is_missing() -> None:
    ended = _hansard("serve")

    assert ended.returncode == 2
    [line] = ended.stderr.splitlines()
    assert "hansard[server]" in line


def test_a_setting_that_cannot_be_meant_is_wrong_use() -> None:
    ended = _hansard("spool", "flush", "--protocol", "pigeon")

    assert ended.returncode == 2
    assert "pigeon" in ended.stderr
