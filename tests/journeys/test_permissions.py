"""Folders and files that may not be written: one line that says so, and nothing is touched."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from tests.journeys.unprivileged import bound_hansard, give_away

SERVE = ("serve", "--http-port", "0", "--grpc-port", "0", "--data")
# Who is not root cannot give files away, and may change the mode of their own again.
FOREIGN = Path("/usr/lib")


def foreign_folder(tmp_path: Path) -> Path:
    """Return a folder of somebody else."""
    if os.getuid() != 0:
        return FOREIGN
    folder = tmp_path / "theirs"
    folder.mkdir()
    give_away([folder], mode=0o755)
    return folder


@pytest.mark.parametrize("below", ["", "data"])
def test_a_folder_that_may_not_be_written_is_one_line(tmp_path: Path, below: str) -> None:
    folder = foreign_folder(tmp_path) / below
    before = sorted(folder.iterdir()) if folder.exists() else None

    ended = bound_hansard(*SERVE, str(folder))

    assert ended.returncode in (1, 2)
    assert str(folder) in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert (sorted(folder.iterdir()) if folder.exists() else None) == before


def _a_folder(database: Path) -> None:
    database.unlink()
    database.mkdir()


def _a_file_of_somebody_else(database: Path) -> None:
    give_away([database], mode=0o600)


# Who is not root can give nothing away, and may read and write whatever is theirs.
IN_ITS_PLACE = [_a_folder, *([_a_file_of_somebody_else] if os.getuid() == 0 else [])]


@pytest.mark.parametrize("put", IN_ITS_PLACE)
def test_a_database_that_may_not_be_used_is_one_line(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    folder = DataFolder(tmp_path / "data")
    open_for_ingest(folder).close()
    put(folder.database)

    ended = bound_hansard(*SERVE, str(folder.path))

    assert ended.returncode in (1, 2)
    assert str(folder.path) in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_folder_that_its_owner_made_read_only_is_one_line_and_stays_so(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    open_for_ingest(folder).close()
    closed = {folder.database: 0o400, folder.blobs: 0o500, folder.path: 0o500}
    for path, mode in closed.items():
        path.chmod(mode)

    ended = bound_hansard("approvals", "list", "--data", str(folder.path))

    assert ended.returncode == 1
    assert "readonly database" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert {path: stat.S_IMODE(path.stat().st_mode) for path in closed} == closed
