"""`hansard evaluate`: compare what agents claimed about their tools with what happened."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext

import click

from hansard._config.setting import read_duration_ns
from hansard._runtime.locks import hold_lock
from hansard_collector.evaluation.engine import Evaluated, Evaluation
from hansard_collector.evaluation.settings import load_rules
from hansard_collector.evaluation.words import evidence_words, verdict_json
from hansard_collector.heartbeat.phase import HeartbeatRunning
from hansard_collector.heartbeat.trace import results_of, store_evaluations
from hansard_compiler.calls import Json
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.data_folder import DataFolder
from hansard_store.evaluation.verdicts import VerdictRow, known_verdicts, memory_ids
from hansard_web.app.config import Config
from hansard_web.cli.base import (
    Command,
    json_option,
    print_json,
    read_config,
    read_option,
    setting_options,
)
from hansard_web.cli.store import reading, use_store
from hansard_web.cli.tables import Column, print_records
from hansard_web.ui import format as fmt


@click.command(cls=Command)
@setting_options("data", "config", "retention", "evidence")
@click.option("--window", metavar="24h", help="How far back; the setting heartbeat_window.")
@click.option("--dry-run", is_flag=True, help="Only judge; store and correct nothing.")
@json_option
def evaluate(*, window: str | None, dry_run: bool, as_json: bool, **arguments: str) -> None:
    """Compare claims with what happened; write corrections.

    Reads what agents said in runs, transcripts and memory since the window began, as far as it is
    new, and holds it against the tools that ran. A cycle of the heartbeat does the same.

    Example: hansard evaluate --window 48h --dry-run
    """
    config = read_config(**arguments)
    window_ns = config.heartbeat_window
    if window is not None:
        window_ns = read_option("--window", window, read_duration_ns)
    folder = use_store(str(config.data))
    with nullcontext() if dry_run else hold_lock(folder.heartbeat, HeartbeatRunning):
        found = _run(folder, config, window_ns, is_dry=dry_run)
    if as_json:
        print_json(_json(str(config.data), found))
        return
    _print(found)


def _run(folder: DataFolder, config: Config, window_ns: int, *, is_dry: bool) -> Evaluated:
    mode = RetentionMode(config.retention)
    now_ns = time.time_ns()
    evaluation = Evaluation(folder, load_rules(config.evidence), mode)
    found = evaluation.run(now_ns=now_ns, since_ns=now_ns - window_ns, dry_run=is_dry)
    if not is_dry:
        store_evaluations(folder, mode, results_of(found.new))
    return found


def _json(data: str, found: Evaluated) -> Json:
    with reading(data) as connection:
        stored = known_verdicts(connection, [one.key for one in found.new])
        rows = [stored.get(one.key, one) for one in found.new]
        names = memory_ids(connection, rows)
    return {**found.figures, "items": [verdict_json(one, names) for one in rows]}


def _print(found: Evaluated) -> None:
    if found.new:
        print_records(
            _in_order(found.new),
            {
                Column("VERDICT"): lambda one: one.verdict,
                Column("WHAT", may_cut=True): lambda one: f"{one.qualifier} {one.subject}".strip(),
                Column("CLAIM", may_cut=True): lambda one: one.said,
                Column("RECORD", may_cut=True): evidence_words,
                Column("CLAIMED AT (UTC)"): lambda one: fmt.day_time(one.claimed_ns),
                Column("STEP"): lambda one: one.step_id or "memory",
            },
        )
    counts = ", ".join(f"{count:,} {name}" for name, count in found.verdicts.items())
    click.echo(f"claims of the window: {counts}", err=True)
    for name, count in found.unverified:
        click.echo(f"unverified: {name}, {fmt.plural(count, 'claim')} without evidence", err=True)
    for name, count in found.unrecorded:
        click.echo(f"no diagnostics: {name}, {fmt.plural(count, 'call')} and no step", err=True)


def _in_order(rows: Sequence[VerdictRow]) -> list[VerdictRow]:
    order = ("contradicted", "unknown", "claimed", "confirmed")
    return sorted(rows, key=lambda one: (order.index(one.verdict), one.claimed_ns))
