"""The server's part of the `hansard` command, found by entry point (pyproject.toml).

The commands of a noun are in its package, those of no noun are here. A module is imported when its
command is used: `hansard runs list` does not pay for uvicorn, nor `hansard --help` for anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import click

from hansard._cli.commands import LazyCommand


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command, where it is found, and the sentence that `hansard --help` says of it."""

    name: str
    module: str
    sentence: str
    starting: str = ""  # printed before the import, where that takes a second or more


_STARTING: Final = "Starting …"
_NO_STARTING: Final = frozenset({"-h", "--help", "--json"})  # what these print is all there is

COMMANDS: Final = (
    CommandEntry("serve", "cli.serve", "Receive telemetry and show it, in one process.", _STARTING),
    CommandEntry(
        "demo",
        "cli.demo",
        "Watch a coding agent fix a failing test, with everything it knew on record.",
    ),
    CommandEntry("collector", "cli.serve", "Only receive telemetry.", _STARTING),
    CommandEntry("web", "cli.serve", "Only show what a collector stores.", _STARTING),
    CommandEntry("open", "cli.open", "Open the pages of a running server in the browser."),
    CommandEntry("tail", "runs.cli", "Follow runs as they happen."),
    CommandEntry("runs", "runs.cli", "Runs: list, show, export, delete, pin."),
    CommandEntry(
        "steps", "steps.cli", "Steps: show one, whole or as it came in; say what it knew, and why."
    ),
    CommandEntry("diff", "diff.cli", "Compare two runs, or two steps: what differs, and why."),
    CommandEntry(
        "receipts", "receipts.cli", "Receipts: what went into prompts and what did not, and why."
    ),
    CommandEntry(
        "policy", "policy.cli", "Policy: check, explain, and the rules with their versions."
    ),
    CommandEntry(
        "transcripts",
        "transcripts.cli",
        "Transcripts: messages, folds, sizes, archives, and whether every row decodes.",
    ),
    CommandEntry(
        "memory",
        "memory.cli",
        "Memory: list, show, history, write, invalidate, accept, unsupersede, purge, gc.",
    ),
    CommandEntry(
        "classify", "heartbeat.classify_cli", "Classify a text with the classifier of the settings."
    ),
    CommandEntry(
        "scan", "heartbeat.scan_cli", "Hold the top stories of an outside source against interests."
    ),
    CommandEntry(
        "annotations",
        "annotations.cli",
        "Annotations: list, note, score, tag, withdraw; export what is marked as a data set.",
    ),
    CommandEntry("views", "views.cli", "Saved views of the run list: list, save, rename, delete."),
    CommandEntry(
        "approvals",
        "approvals.cli",
        "Approvals: list, show, approve, reject, revise, settle, undo.",
    ),
    CommandEntry(
        "evaluate", "evaluation.cli", "Compare claims with what happened; write corrections."
    ),
    CommandEntry(
        "detect",
        "tasks.cli",
        "Look for what goes wrong again and again; open tasks for review.",
    ),
    CommandEntry(
        "errors",
        "error_groups.cli",
        "Errors by cause: list, show, watch, unwatch, note, close, open.",
    ),
    CommandEntry("tasks", "tasks.cli", "Tasks for review: list, show, approve, dismiss, done."),
    CommandEntry(
        "heartbeat",
        "heartbeat.cli",
        "Compare claims with the record, maintain memory, look for patterns, report.",
    ),
    CommandEntry(
        "notifications",
        "notifications.cli",
        "Notifications: list, show, retry, test, the signing secret.",
    ),
    CommandEntry("tokens", "cli.tokens", "Tokens: add, list, revoke."),
    CommandEntry("events", "audit.cli", "Events: the audit log: list, head, verify, export."),
    CommandEntry(
        "repl",
        "approvals.repl",
        "Propose and decide actions by hand: /plan /revise /approve /reject /pending /events.",
    ),
    CommandEntry("payload", "payloads.cli", "Payloads: get the bytes of one, verify them."),
    CommandEntry("replay", "replay_page.cli", "Make a model call again: exactly, or with changes."),
    CommandEntry("mcp", "mcp.cli", "Offer the record to MCP clients, over stdin and stdout."),
    CommandEntry(
        "find",
        "palette.cli",
        "Find runs, steps, users, conversations, views, settings and pages by name.",
    ),
    CommandEntry(
        "search", "search.cli", "Search messages, tool calls, errors and logs of all runs."
    ),
    CommandEntry("users", "users.cli", "Users: list, show."),
    CommandEntry("conversations", "conversations.cli", "Conversations: list, show, messages."),
    CommandEntry(
        "overview", "overview.cli", "Sum runs, calls, cost, errors and latency over time."
    ),
    CommandEntry(
        "latency",
        "overview.cli",
        "Compare the latency, errors and cost of models, tools or agents.",
    ),
    CommandEntry("usage", "usage.cli", "Sum tokens and money."),
    CommandEntry(
        "doctor",
        "health.doctor_cli",
        "Check ports, disk, permissions, versions, the server and the SDK's settings.",
    ),
    CommandEntry("import", "cli.transfer", "Read OTLP files into the store."),
    CommandEntry("export", "cli.transfer", "Write all runs as OTLP."),
    CommandEntry("table", "exports.cli", "Write a list as CSV, JSON, Markdown or HTML."),
    CommandEntry("backup", "health.cli", "Copy the store while it is used."),
    CommandEntry("restore", "health.cli", "Put a backup in an empty data folder."),
    CommandEntry("report", "reports.cli", "Write a status report, or read and acknowledge one."),
    CommandEntry(
        "verify",
        "health.cli",
        "Check the store against itself and its audit log, or a compile.",
    ),
    CommandEntry("rebuild", "health.cli", "Derive everything again from what was received."),
    CommandEntry(
        "repair", "health.cli", "Restore the database's schema where somebody altered it."
    ),
    CommandEntry(
        "maintain",
        "heartbeat.cli",
        "Find contradictions in memory, link corrections, count what nobody retrieves.",
    ),
    CommandEntry("gc", "health.cli", "Delete old runs and remove what nothing uses."),
    CommandEntry(
        "interests",
        "heartbeat.interests_cli",
        "Find the topics of recent memory, or list the interests.",
    ),
)


class MissingExtra(click.ClickException):
    """The command needs a package that only the extra `server` brings."""

    exit_code = 2

    def __init__(self, package: str) -> None:
        super().__init__(f"the package {package!r} is missing: pip install 'hansard[server]'")


class ServerCommand(LazyCommand):
    """A command of this package; a missing package of the extra `server` is one line."""

    def __init__(self, entry: CommandEntry) -> None:
        super().__init__(entry.name, entry.sentence, f"hansard_web.{entry.module}")
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
