"""`hansard heartbeat`: one cycle over the store, or one every so often."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from types import MappingProxyType
from typing import Any

import click

from hansard._config.setting import read_duration_ns
from hansard._runtime.locks import hold_lock
from hansard_collector.heartbeat.cycle import CycleResult, Heartbeat
from hansard_collector.heartbeat.phase import HeartbeatRunning, HeartbeatSettings
from hansard_collector.judges.recording import CallTrace
from hansard_collector.maintenance import (
    Maintainer,
    MaintenanceResult,
    MaintenanceSettings,
    result_json,
)
from hansard_compiler.calls import Json
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.heartbeat import Origin, cycle_json, list_cycles, phase_json
from hansard_store.ids import short_id
from hansard_store.memory.maintenance.service import MaintenanceService
from hansard_store.times import time_text
from hansard_web.app.config import JUDGE_SETTINGS, Config, judges_of
from hansard_web.cli.base import (
    Command,
    Failed,
    Misused,
    json_option,
    print_json,
    read_config,
    read_option,
    setting_options,
)
from hansard_web.cli.store import find_store, reading, use_store
from hansard_web.cli.tables import Column, print_records
from hansard_web.ui import format as fmt

# `hansard maintain`: contradictions, corrections and stale records in memory.

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
    use_store(str(config.data))
    result = _run_maintenance(config, is_dry=dry_run)
    if as_json:
        print_json(result_json(result))
    else:
        _print_maintenance(result)


def maintenance_settings(config: Config) -> MaintenanceSettings:
    """Return the settings of maintenance in a configuration."""
    return MaintenanceSettings(stale_ns=config.stale_after)


def _run_maintenance(config: Config, *, is_dry: bool) -> MaintenanceResult:
    folder = find_store(str(config.data))
    mode = RetentionMode(config.retention)
    trace = CallTrace(folder, mode, _SERVICE)
    with (
        closing(judges_of(config)) as judges,
        hold_lock(folder.heartbeat, HeartbeatRunning),
        trace.span("maintain", always=False),
        closing(MaintenanceService(folder, mode)) as maintenance,
    ):
        recorded = judges.recorded_by(trace.recorder)
        return Maintainer(maintenance, recorded, maintenance_settings(config), is_dry).run()


def _print_maintenance(result: MaintenanceResult) -> None:
    click.echo(result.summary + (" (dry run: nothing is written)" if result.is_dry else ""))
    changes = [("superseded", one) for one in result.applied]
    changes += [("for review", one) for one in result.proposed]
    if not changes:
        return
    print_records(
        changes,
        {
            Column("OUTCOME"): lambda change: change[0],
            Column("OLDER"): lambda change: short_id(change[1].older.memory_id),
            Column("NEWER"): lambda change: short_id(change[1].newer.memory_id),
            Column("SUBJECT", may_cut=True): lambda change: fmt.printable(change[1].older.subject),
            Column("SCORE", is_figure=True): lambda change: f"{change[1].link.score:.2f}",
            Column("BY"): lambda change: change[1].link.judge,
            Column("WHY", may_cut=True): lambda change: fmt.printable(change[1].link.rationale),
        },
    )
    if result.applied:
        click.echo("take one back: hansard memory unsupersede OLDER", err=True)
    if result.proposed:
        click.echo("decide: hansard tasks list, or the page Reviews", err=True)


@click.command(cls=Command)
@setting_options(
    "data", "config", "retention", "outbound", "heartbeat_window", "scan_url", "stale_after",
    "recipients", "report_every", "report_escalation", "report_webhook", "detect_threshold",
    "detect_window", "detect_min_cases", "evidence", *JUDGE_SETTINGS,
)  # fmt: skip
@click.option("--once", is_flag=True, help="Run one cycle and end. This is the default.")
@click.option("--every", metavar="DURATION", help="Run a cycle every so often, such as 15m.")
@click.option("--history", is_flag=True, help="Show the last cycles; run none.")
@click.option("--origin", type=click.Choice(["command", "server"]), default="command", hidden=True)
@json_option
def heartbeat(
    *,
    once: bool,
    every: str | None,
    history: bool,
    origin: Origin,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Compare claims with the record, maintain memory, look for patterns, report.

    A cycle runs each phase once; one that fails does not stop the others. Runs by hand, by cron or
    beside a server (`hansard serve --heartbeat 15m`). Ends with 1 if a phase failed.

    Example: hansard heartbeat --once
    """
    if history:
        _print_history(arguments.get("data"), as_json=as_json)
        return
    interval_s = _interval_s(every, once=once)
    config = read_config(**arguments)
    use_store(str(config.data))
    if interval_s is None:
        result = _run(config, origin=origin, as_json=as_json)
        if result.failed:
            raise Failed(f"{fmt.plural(len(result.failed), 'phase')} failed")
        return
    while True:
        begun = time.monotonic()
        try:
            _run(config, origin=origin, as_json=as_json)
        except HeartbeatRunning as error:
            click.echo(str(error), err=True)
        # From the beginning of the last one: missed ones do not pile up.
        time.sleep(max(0.0, begun + interval_s - time.monotonic()))


def heartbeat_of(config: Config, *, origin: Origin) -> Heartbeat:
    """Return the heartbeat of a store, as its settings say."""
    settings = HeartbeatSettings(
        window_ns=config.heartbeat_window,
        outbound=config.outbound == "on",
        options=options_of(config),
    )
    return Heartbeat(
        find_store(str(config.data)),
        judges_of(config),
        RetentionMode(config.retention),
        settings=settings,
        origin=origin,
    )


def options_of(config: Config) -> Mapping[str, Any]:
    """Return the settings of single phases."""
    return MappingProxyType(
        {
            "scan_url": config.scan_url,
            "evidence": config.evidence,
            "maintenance": maintenance_settings(config),
            "recipients": config.recipients,
            "report_every": config.report_every,
            "report_escalation": config.report_escalation,
            "report_webhook": config.report_webhook,
            "detect_threshold": dict(config.detect_threshold),
            "detect_window": dict(config.detect_window),
            "detect_min_cases": dict(config.detect_min_cases),
        }
    )


def _interval_s(every: str | None, *, once: bool) -> float | None:
    if every is None:
        return None
    if once:
        raise Misused("--once and --every do not go together")
    return read_option("--every", every, read_duration_ns) / 1e9


def _run(config: Config, *, origin: Origin, as_json: bool) -> CycleResult:
    result = heartbeat_of(config, origin=origin).run()
    if as_json:
        print_json(_result_json(result))
    else:
        print_records(
            result.phases,
            {
                Column("PHASE"): lambda one: one.name,
                Column("STATUS"): lambda one: one.status,
                Column("TIME", is_figure=True): lambda one: fmt.duration(one.duration_ns),
                Column("RESULT", may_cut=True): lambda one: one.summary,
            },
        )
        click.echo(f"run: {result.cycle_id}", err=True)
    return result


def _result_json(result: CycleResult) -> Json:
    return {
        "run_id": result.cycle_id,
        "started_at": time_text(result.started_ns),
        "ended_at": time_text(result.ended_ns),
        "failed": list(result.failed),
        "phases": [phase_json(one) for one in result.phases],
    }


# ---- past cycles


def _print_history(data: str | None, *, as_json: bool) -> None:
    with reading(data) as connection:
        cycles = list_cycles(connection)
    if as_json:
        print_json({"items": [cycle_json(one) for one in cycles]})
        return
    print_records(
        cycles,
        {
            Column("BEGAN (UTC)"): lambda one: fmt.day_time(one.started_ns),
            Column("RUN"): lambda one: one.cycle_id,
            Column("FROM"): lambda one: one.origin,
            Column("PHASES", is_figure=True): lambda one: str(len(one.phases)),
            Column("FAILED"): lambda one: ", ".join(
                phase.name for phase in one.phases if phase.status == "failed"
            ),
        },
    )
