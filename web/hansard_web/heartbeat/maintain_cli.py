"""`hansard maintain`: contradictions, corrections and stale records in memory."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click

from hansard._runtime.locks import hold_lock
from hansard_collector.heartbeat.errors import HeartbeatUnderWay
from hansard_collector.judges.recording import CallTrace
from hansard_collector.maintenance import (
    Maintainer,
    MaintenanceResult,
    MaintenanceSettings,
    result_json,
)
from hansard_compiler.calls import Json
from hansard_compiler.retention import RetentionMode
from hansard_store.ids import short_id
from hansard_store.memory.maintenance.service import MaintenanceBook
from hansard_web.app.config import Config
from hansard_web.app.judges import JUDGE_SETTINGS, judges_of
from hansard_web.cli.base import Command, json_option, print_json, read_config, setting_options
from hansard_web.cli.store import find_store, open_store
from hansard_web.cli.tables import Column, print_table
from hansard_web.ui import format as fmt

_SERVICE = "hansard.maintain"


@click.command(cls=Command)
@setting_options("data", "config", "retention", "stale_after", *JUDGE_SETTINGS)
@click.option("--dry-run", is_flag=True, help="Show what would be done; write nothing.")
@json_option
def maintain(*, dry_run: bool, as_json: bool, **arguments: Any) -> None:
    """Find contradictions in memory, link corrections, count what nobody retrieves.

    What is certain is superseded, with rationale and score, and can be taken back
    (`hansard memory unsupersede`); what is doubtful becomes a task for review (`hansard tasks`).
    Nothing is deleted. A second run with nothing new asks no classifier.

    Example: hansard maintain --dry-run --json
    """
    config = read_config(**arguments)
    open_store(find_store(str(config.data))).close()  # of this version, or refused
    result = _run(config, is_dry=dry_run)
    if as_json:
        print_json(result_json(result))
        return
    _print(result)


def maintenance_settings(config: Config) -> MaintenanceSettings:
    """Return the settings of maintenance in a configuration."""
    return MaintenanceSettings(stale_ns=config.stale_after)


def _run(config: Config, *, is_dry: bool) -> MaintenanceResult:
    folder = find_store(str(config.data))
    mode = RetentionMode(config.retention)
    trace = CallTrace(folder, mode, _SERVICE)
    with (
        closing(judges_of(config)) as judges,
        hold_lock(folder.heartbeat, HeartbeatUnderWay),
        trace.span("maintain", always=False),
        closing(MaintenanceBook(folder, mode)) as book,
    ):
        recorded = judges.recorded_by(trace.recorder)
        return Maintainer(book, recorded, maintenance_settings(config), is_dry).run()


def _print(result: MaintenanceResult) -> None:
    click.echo(result.summary + (" (dry run: nothing is written)" if result.is_dry else ""))
    told: list[Json] = [
        {**one, "outcome": "superseded"} for one in result_json(result)["supersessions"]
    ]
    told += [{**one, "outcome": "for review"} for one in result_json(result)["reviews"]]
    if not told:
        return
    print_table(
        (
            Column("OUTCOME"),
            Column("OLDER"),
            Column("NEWER"),
            Column("SUBJECT", may_cut=True),
            Column("SCORE", is_figure=True),
            Column("BY"),
            Column("WHY", may_cut=True),
        ),
        (
            (
                one["outcome"],
                short_id(one["older"]),
                short_id(one["newer"]),
                fmt.printable(one["subject"]),
                f"{one['score']:.2f}",
                one["judge"],
                fmt.printable(one["rationale"]),
            )
            for one in told
        ),
    )
    if result.applied:
        click.echo("take one back: hansard memory unsupersede OLDER", err=True)
    if result.proposed:
        click.echo("decide: hansard tasks list, or the page Reviews", err=True)
