"""The `hansard` command: finds its subcommands by entry point, so the SDK stays light."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

import click

from hansard import __version__


class _Commands(click.Group):
    """Says which package is missing for a command that is not there."""

    missing = ""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.missing and self.get_command(ctx, args[0]) is None:
            sys.stderr.write(
                f"hansard: the package {self.missing!r} is missing; "
                "the commands of the server need: pip install 'hansard[server]'\n"
            )
            ctx.exit(2)
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.missing:
            formatter.write_paragraph()
            formatter.write_text("The commands of the server need: pip install 'hansard[server]'")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hansard")
def cli() -> None:
    """The official record of what your agents saw, decided and did."""


def main() -> None:
    """Run the command line; a command of an extra that is missing exits 2 and names it."""
    for entry in entry_points(group="hansard.commands"):
        try:
            add_commands = entry.load()
        except ModuleNotFoundError as missing:
            cli.missing = missing.name or str(missing)
            continue
        add_commands(cli)
    cli()
