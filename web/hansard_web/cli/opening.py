"""`hansard open`: the pages of a running server."""

from __future__ import annotations

import os
import time
import webbrowser

import click

from hansard_store.run_queries import get_run
from hansard_web.cli.base import Command, Failed, setting_options
from hansard_web.cli.store import reading
from hansard_web.config import data_folder
from hansard_web.presence import find_server


@click.command("open", cls=Command)
@click.argument("run_id", required=False)
@setting_options("data")
@click.option("--print", "only_print", is_flag=True, help="Print the address, open nothing.")
def open_(*, run_id: str | None, data: str | None, only_print: bool) -> None:
    """Open the pages of a running server in the browser.

    With RUN_ID (its first eight digits suffice) the page of that run.

    Example: hansard open 4bf92f35
    """
    folder = data_folder(data, os.environ)
    doors = find_server(folder)
    if doors is None:
        raise Failed(f"no server is running on {folder}: start `hansard serve`")
    address = f"{doors.http}/"
    if run_id is not None:
        with reading(data) as connection:
            address += f"runs/{get_run(connection, run_id, now_ns=time.time_ns()).run_id}"
    click.echo(address)
    if not only_print:
        webbrowser.open(address)
