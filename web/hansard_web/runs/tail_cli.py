"""`hansard tail`: runs as they happen."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator

import apsw
import click

from hansard_store.database.readers import data_version
from hansard_store.runs.queries import RunItem, changed_runs, last_change
from hansard_web.api.bodies import run_body
from hansard_web.cli.base import Command, setting_options
from hansard_web.cli.store import reading
from hansard_web.cli.tables import plain, print_lines, status_text
from hansard_web.runs.cli import cost_text, duration_text, tokens_text
from hansard_web.ui import format as fmt

_POLL_S = 0.25
_MOST = 500  # changes read at once


@click.command(cls=Command)
@setting_options("data")
@click.option("--all", "from_start", is_flag=True, help="Begin with every run there is.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line.")
def tail(*, data: str | None, from_start: bool, as_json: bool) -> None:
    """Follow runs as they happen.

    A line each time a run begins, grows or ends; Ctrl+C ends it.

    Example: hansard tail
    """
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with reading(data) as connection:
        seq = 0 if from_start else last_change(connection)
        for run in _follow(connection, after=seq, stop=stop):
            _print_run(run, as_json=as_json)


def _follow(connection: apsw.Connection, *, after: int, stop: threading.Event) -> Iterator[RunItem]:
    """Yield runs in the order of their changes, until stopped."""
    seen_version = -1
    while not stop.is_set():
        # Read before the changes: what is committed in between is seen in the next round.
        version = data_version(connection)
        if version == seen_version:
            stop.wait(_POLL_S)
            continue
        changes = changed_runs(connection, since_change=after, now_ns=time.time_ns(), limit=_MOST)
        yield from changes
        after = max((run.change_seq for run in changes), default=after)
        if len(changes) < _MOST:
            seen_version = version


def _print_run(run: RunItem, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(run_body(run)))
        return
    facts = (
        fmt.clock(run.started_ns),
        run.run_id[:12],
        run.name,
        duration_text(run.duration_ns),
        fmt.plural(run.step_count, "step"),
        f"{tokens_text(run.tokens)} tokens",
        cost_text(run.cost_usd_nano),
    )
    print_lines([plain("  ".join((*facts, ""))).append_text(status_text(run.status))])
