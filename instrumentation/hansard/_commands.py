"""The commands that need nothing but the SDK; the server's stand in `hansard_web.cli`."""

from __future__ import annotations

import click

from hansard.cli_spool import spool


def commands(cli: click.Group) -> None:
    """Add the SDK's commands."""
    cli.add_command(spool)
