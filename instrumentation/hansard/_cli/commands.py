"""The commands that need nothing but the SDK; the server's stand in `hansard_web.cli`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click


class LazyCommand(click.Command):
    """Stands for a command until it is used; the attribute in its module has its name."""

    def __init__(self, name: str, sentence: str, module: str) -> None:
        super().__init__(name, help=sentence)
        self._named = name
        self._module = module

    def load(self) -> click.Command:
        """Import the command itself; a name that Python uses ends in an underscore there."""
        module = import_module(self._module)
        command: click.Command = getattr(module, f"{self._named}_", None) or getattr(
            module, self._named
        )
        return command

    def make_context(
        self, info_name: str | None, args: list[str], *more: Any, **kwargs: Any
    ) -> click.Context:
        """Hand over: from here on click talks to the command itself."""
        return self.load().make_context(info_name, args, *more, **kwargs)


def commands(cli: click.Group) -> None:
    """Add the SDK's commands."""
    sentence = "What waits on disk because the collector did not answer."
    cli.add_command(LazyCommand("spool", sentence, "hansard._cli.spool"))
    sentence = "Warn agents before commands that cannot be undone; record their sessions."
    cli.add_command(LazyCommand("hook", sentence, "hansard._cli.hook"))
