"""The `hansard` command with its subcommands, found by entry point, so the SDK stays light."""

from __future__ import annotations

import gc
import sys
from importlib.metadata import entry_points
from typing import Final

import click

from hansard import __version__

_GC_OBJECTS: Final = 50_000  # made since the last walk over the youngest; Python's own is 700


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hansard")
def cli() -> None:
    """The official record of what your agents saw, decided and did."""


def run_command() -> None:
    """Run the command line; a missing extra exits 2 and names it."""
    # What modules make stays: walks over it for garbage were a third of the time to load a server.
    gc.set_threshold(_GC_OBJECTS, 20, 20)
    for entry in entry_points(group="hansard.commands"):
        try:
            add_commands = entry.load()
        except ModuleNotFoundError as missing:
            sys.stderr.write(
                f"hansard: the package {missing.name!r} is missing; "
                "the commands of the server need: pip install 'hansard[server]'\n"
            )
            sys.exit(2)
        add_commands(cli)
    cli()
