"""`hansard tokens`: named tokens, which say who decided."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import click

from hansard_compiler.calls import Json
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.principals.model import CLAIMED, Scope, scopes_text
from hansard_store.principals.service import NamedToken, Principals
from hansard_store.times import time_text
from hansard_web.cli.base import (
    CommandGroup,
    json_option,
    print_json,
    read_config,
    setting_options,
    user_name,
)
from hansard_web.cli.store import find_store
from hansard_web.cli.tables import Column, print_lines, print_table
from hansard_web.ui.format import day_time

_STORE = ("data", "config")


@click.group(cls=CommandGroup)
def tokens() -> None:
    """Tokens: add, list, revoke."""


@tokens.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([str(one) for one in Scope]),
    multiple=True,
    required=True,
    help="What it may do; give several. `decide` may read too.",
)
@setting_options(*_STORE)
@json_option
def add(*, name: str, scopes: tuple[str, ...], data: str, config: str, as_json: bool) -> None:
    """Add a token for NAME and print its secret, which is kept nowhere.

    A running server knows it at once. Decisions made with it are kept as NAME's.

    Example: hansard tokens add ana --scope decide
    """
    requested = frozenset(Scope(one) for one in scopes)
    with _principals(data, config, creates=True) as principals:
        secret = principals.add(name, requested, by=CLAIMED, who=user_name())
    if as_json:
        print_json({"name": name, "secret": secret})
        return
    print_lines([secret])
    click.echo(
        f"This is the token of {name}; it is shown once. Programs send it as "
        "`Authorization: Bearer`, browsers take it on /signin.",
        err=True,
    )


@tokens.command("list")
@setting_options(*_STORE)
@json_option
def list_(*, data: str, config: str, as_json: bool) -> None:
    """List named tokens, revoked ones too; no secret is shown.

    Example: hansard tokens list
    """
    with _principals(data, config) as principals:
        found = principals.tokens()
    if as_json:
        print_json({"items": [_token_json(one) for one in found]})
        return
    print_table(
        [Column("name"), Column("scopes"), Column("added"), Column("last used"), Column("state")],
        [_row(one) for one in found],
    )


@tokens.command()
@click.argument("name")
@setting_options(*_STORE)
def revoke(*, name: str, data: str, config: str) -> None:
    """End the token of NAME, with every browser session and link of it, at once.

    Example: hansard tokens revoke ana
    """
    with _principals(data, config) as principals:
        ended = principals.revoke(name, by=CLAIMED, who=user_name())
    print_lines(
        [f"the token of {ended.name} is revoked; browsers signed in with it are signed out"]
    )


@contextmanager
def _principals(data: str, config: str, *, creates: bool = False) -> Iterator[Principals]:
    folder = DataFolder(read_config(data=data, config=config).data)
    if creates and not folder.has_store:
        open_for_ingest(folder).close()
    else:
        find_store(data)
    with closing(Principals(folder)) as principals:
        yield principals


def _token_json(one: NamedToken) -> Json:
    return {
        "name": one.name,
        "scopes": sorted(one.scopes),
        "has_secret": one.has_secret,
        "created_at": time_text(one.created_ns),
        "created_by": one.created_by,
        "last_used_at": time_text(one.used_ns or None),
        "revoked_at": time_text(one.revoked_ns),
        "revoked_by": one.revoked_by,
    }


def _row(one: NamedToken) -> list[str]:
    state = "in force" if one.has_secret else "in force, by links of a server only"
    if one.revoked_ns is not None:
        state = f"revoked {day_time(one.revoked_ns)}"
    used = day_time(one.used_ns) if one.used_ns else "never" if one.has_secret else ""
    return [one.name, scopes_text(one.scopes), day_time(one.created_ns), used, state]
