"""The server's part of the `hansard` command, found by entry point (pyproject.toml).

A module holds the commands of one noun or job. It is imported when its command is used, so that
`hansard runs list` does not pay for uvicorn, nor `hansard --help` for anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import click

from hansard._cli.commands import LazyCommand


@dataclass(frozen=True, slots=True)
class Entry:
    """A command, where it is found, and the sentence that `hansard --help` says of it."""

    name: str
    module: str
    sentence: str
    starting: str = ""  # printed before the import, where that takes a second or more


_STARTING: Final = "Starting …"
_NO_STARTING: Final = frozenset({"-h", "--help", "--json"})  # what these print is all there is

COMMANDS: Final = (
    Entry("serve", "serving", "Receive telemetry and show it, in one process.", _STARTING),
    Entry(
        "demo",
        "demonstration",
        "Watch a coding agent fix a failing test, with everything it knew on record.",
    ),
    Entry("collector", "serving", "Only receive telemetry.", _STARTING),
    Entry("web", "serving", "Only show what a collector stores.", _STARTING),
    Entry("open", "opening", "Open the pages of a running server in the browser."),
    Entry("tail", "tail", "Follow runs as they happen."),
    Entry("runs", "runs", "Runs: list, show, export, delete, pin."),
    Entry("steps", "steps", "Steps: show one, whole or as it came in; say what it knew, and why."),
    Entry("diff", "diff", "Compare two runs, or two steps: what differs, and why."),
    Entry("receipts", "receipts", "Receipts: what went into prompts and what did not, and why."),
    Entry("policy", "policy", "Policy: check, explain, and the rules with their versions."),
    Entry(
        "transcripts",
        "transcripts",
        "Transcripts: what was said, folds, sizes, archives, and whether every row decodes.",
    ),
    Entry(
        "memory",
        "memory",
        "Memory: list, show, history, write, invalidate, accept, unsupersede, purge, gc.",
    ),
    Entry("classify", "classify", "Classify a text with the classifier of the settings."),
    Entry("scan", "scan", "Hold the top stories of an outside source against interests."),
    Entry(
        "annotations",
        "annotations",
        "Annotations: list, note, score, tag, withdraw; export what is marked as a data set.",
    ),
    Entry(
        "approvals", "approvals", "Approvals: list, show, approve, reject, revise, settle, undo."
    ),
    Entry("evaluate", "evaluate", "Compare claims with what happened; write corrections."),
    Entry("detect", "detect", "Look for what goes wrong again and again; open tasks for review."),
    Entry("tasks", "tasks", "Tasks for review: list, show, approve, dismiss, done."),
    Entry(
        "heartbeat",
        "heartbeat",
        "Compare claims with the record, maintain memory, look for patterns, report.",
    ),
    Entry("tokens", "tokens", "Tokens: add, list, revoke."),
    Entry("events", "events", "Events: the audit log: list, head, verify, export."),
    Entry(
        "repl",
        "repl",
        "Propose and decide actions by hand: /plan /revise /approve /reject /pending /events.",
    ),
    Entry("payload", "payload", "Payloads: get the bytes of one, verify them."),
    Entry("replay", "replay", "Make a model call again: exactly, or with changes."),
    Entry("mcp", "mcp_stdio", "Offer the record to MCP clients, over stdin and stdout."),
    Entry("search", "search", "Find what was said, in any run."),
    Entry("usage", "usage", "Sum tokens and money."),
    Entry(
        "doctor",
        "doctor",
        "Check ports, disk, permissions, versions, the server and the SDK's settings.",
    ),
    Entry("import", "transfer", "Read OTLP files into the store."),
    Entry("export", "transfer", "Write all runs as OTLP."),
    Entry("backup", "copies", "Copy the store while it is used."),
    Entry("restore", "copies", "Put a backup in an empty data folder."),
    Entry("report", "report", "Write a status report, or read and acknowledge one."),
    Entry(
        "verify", "maintenance", "Check the store against itself and its audit log, or a compile."
    ),
    Entry("rebuild", "rebuilding", "Derive everything again from what was received."),
    Entry("repair", "maintenance", "Restore the database's schema where somebody altered it."),
    Entry(
        "maintain",
        "maintain",
        "Find contradictions in memory, link corrections, count what nobody retrieves.",
    ),
    Entry("gc", "maintenance", "Delete old runs and remove what nothing uses."),
    Entry("interests", "interests", "Find the topics of recent memory, or list the interests."),
)


class MissingExtra(click.ClickException):
    """The command needs a package that only the extra `server` brings."""

    exit_code = 2

    def __init__(self, package: str) -> None:
        super().__init__(f"the package {package!r} is missing: pip install 'hansard[server]'")


class ServerCommand(LazyCommand):
    """A command of this package; a missing package of the extra `server` is one line."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry.name, entry.sentence, f"{__name__}.{entry.module}")
        self._starting = entry.starting

    def load(self) -> click.Command:
        """Import the command itself."""
        try:
            return super().load()
        except ModuleNotFoundError as missing:
            raise MissingExtra(missing.name or "") from None

    def make_context(
        self, info_name: str | None, args: list[str], *more: Any, **kwargs: Any
    ) -> click.Context:
        """Print the line of a slow start before the import."""
        if self._starting and not _NO_STARTING.intersection(args):
            click.echo(self._starting)
        return super().make_context(info_name, args, *more, **kwargs)


def commands(group: click.Group) -> None:
    """Add every command to the group; called by hansard._cli.main."""
    for entry in COMMANDS:
        group.add_command(ServerCommand(entry))
