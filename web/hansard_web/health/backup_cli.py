"""Copies of a whole store: backup, restore."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import click

from hansard_store.approvals.service import Accountability
from hansard_store.database.data_folder import DataFolder
from hansard_store.maintenance.backup import Backup, back_up
from hansard_store.maintenance.backup import restore as restore_store
from hansard_web.app.config import data_folder
from hansard_web.cli.base import (
    Command,
    json_option,
    print_json,
    read_config,
    setting_options,
)
from hansard_web.cli.progress import progress_of
from hansard_web.cli.store import find_store, open_store
from hansard_web.cli.tables import print_lines
from hansard_web.cli.user import user_name
from hansard_web.ui import format as fmt


@click.command(cls=Command)
@click.argument("target", type=click.Path(path_type=Path))
@setting_options("data")
@click.option("--no-key", is_flag=True, help="Leave the key out; redactions cannot be compared.")
@json_option
def backup(*, target: Path, data: str | None, no_key: bool, as_json: bool) -> None:
    """Copy the store while it is used.

    TARGET is a new folder, laid out like the data folder, or an archive if it ends in .tar.zst.

    Example: hansard backup friday.tar.zst
    """
    folder = find_store(data)
    open_store(folder).close()
    with progress_of() as tell:
        made = back_up(folder, target, with_key=not no_key, progress=tell)
    _report(made, f"backed up to {target}", as_json=as_json)


@click.command(cls=Command)
@click.argument("source", type=click.Path(path_type=Path))
@setting_options("data", "heads_copy")
@json_option
def restore(*, source: Path, data: str | None, heads_copy: str | None, as_json: bool) -> None:
    """Put a backup in an empty data folder.

    Where this store had come further here, the older state is taken for the valid one, and the
    audit log says so: the restored folder may run approved actions.

    Example: hansard restore friday.tar.zst --data ./restored
    """
    folder = DataFolder(data_folder(data, os.environ))
    with progress_of() as tell:
        made = restore_store(source, folder, progress=tell)
    config = read_config(data=str(folder.path), heads_copy=heads_copy)
    open_store(folder).close()
    with Accountability(folder, source="cli", heads_copy=config.heads_copy) as desk:
        desk.accept_head(by=user_name(), note="restored from a backup")
    _report(made, f"restored to {folder.path}", as_json=as_json)


def _report(made: Backup, done: str, *, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(made))
        return
    held = [fmt.plural(made.spans, "span"), fmt.plural(made.blobs, "large payload")]
    if not made.has_key:
        held.append("no key")
    print_lines(
        [fmt.printable(f"{done}: {', '.join(held)}, as of {fmt.day_time(made.created_ns)} UTC")]
    )
