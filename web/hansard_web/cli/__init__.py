"""The server's part of the `hansard` command, found by entry point (pyproject.toml).

A module holds the commands of one noun or job and imports what they need when they run: `hansard
runs list` does not pay for uvicorn, nor `--help` for anything.
"""

from __future__ import annotations

import click

from hansard_web.cli.demonstration import demo
from hansard_web.cli.serving import collector, serve, web


def commands(group: click.Group) -> None:
    """Add every command to the group; called by hansard._main."""
    for command in (serve, collector, web, demo):
        group.add_command(command)
