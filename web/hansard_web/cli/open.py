"""`hansard open`: the pages of a running server."""

from __future__ import annotations

import os
import time
import webbrowser
from contextlib import closing
from urllib.parse import urlencode

import click

from hansard_store.database.data_folder import DataFolder
from hansard_store.principals.service import Principals
from hansard_store.runs.queries import get_run
from hansard_web.app.addresses import way_back
from hansard_web.app.config import data_folder
from hansard_web.app.server_file import Endpoints, find_server
from hansard_web.cli.base import Command, Failed, setting_options, user_name
from hansard_web.cli.store import reading


@click.command("open", cls=Command)
@click.argument("page", metavar="[RUN_ID | PATH]", required=False)
@setting_options("data")
@click.option("--print", "only_print", is_flag=True, help="Print the address, open nothing.")
def open_(*, page: str | None, data: str | None, only_print: bool) -> None:
    """Open the pages of a running server in the browser.

    With RUN_ID (its first eight digits suffice) the page of that run, with PATH, as in
    /approvals, that page. The browser is signed in as the user of this terminal; with --print
    the address can be used until the server stops.

    Example: hansard open 4bf92f35
    """
    folder = data_folder(data, os.environ)
    endpoints = find_server(folder)
    if endpoints is None:
        raise Failed(f"no server is running on {folder}: start `hansard serve`")
    there = _path_of(page, data)
    address = _signing_in(endpoints, there, is_once=not only_print)
    click.echo(address if only_print else f"{endpoints.http}{there}")
    if not only_print:
        webbrowser.open(address)


def _path_of(page: str | None, data: str | None) -> str:
    if page is None:
        return "/"
    if page.startswith("/"):
        if way_back(page) != page:
            raise Failed(f"{page} is no path of this server: give one as in /approvals")
        return page
    with reading(data) as connection:
        return f"/runs/{get_run(connection, page, now_ns=time.time_ns()).run_id}"


def _signing_in(endpoints: Endpoints, there: str, *, is_once: bool) -> str:
    """Return an address that opens a page signed in; good for one use where others could see it."""
    if not endpoints.instance:  # a server of an earlier version
        return f"{endpoints.http}{there}"
    with closing(Principals(DataFolder(endpoints.data))) as principals:
        code = principals.add_link(user_name(), server=endpoints.instance, is_once=is_once)
    onward = f"?{urlencode({'next': there})}" if there != "/" else ""
    return f"{endpoints.http}/signin/link/{code}{onward}"
