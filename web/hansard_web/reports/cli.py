"""`hansard report`: a page on the state of the store, and who has read it."""

from __future__ import annotations

import time

import click

from hansard_collector.reports import ReportSettings, Waiting, pending, waiting_for, write_report
from hansard_compiler.calls import Json
from hansard_store.principals.authority import Authority
from hansard_store.principals.model import person_text
from hansard_store.reports.files import Report, Reports, report_json
from hansard_web.app.config import Config
from hansard_web.cli.base import (
    Command,
    Misused,
    json_option,
    print_json,
    read_config,
    setting_options,
    user_name,
    write_bytes,
)
from hansard_web.cli.store import find_store, open_store
from hansard_web.cli.tables import Column, print_table
from hansard_web.ui import format as fmt


@click.command(cls=Command)
@setting_options("data", "config", "heartbeat_window", "recipients", "report_escalation")
@click.option("--latest", is_flag=True, help="Print the newest unread one, and acknowledge it.")
@click.option(
    "--as", "reader", metavar="NAME", help="Who reads. Default: the user of this machine."
)
@click.option("--list", "as_list", is_flag=True, help="List the reports; write none.")
@click.option("--pending", "only_pending", is_flag=True, help="List those that wait for somebody.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, show_default=True)
@json_option
def report(
    *,
    latest: bool,
    reader: str | None,
    as_list: bool,
    only_pending: bool,
    limit: int,
    as_json: bool,
    **arguments: str,
) -> None:
    """Write a status report, or read and acknowledge one.

    A report has at most 60 lines and is printed. It says what failed, what waits for a person,
    what was corrected and what has changed. Each is a file in the data folder, under reports/, and
    an .ack file beside it says who has read it.

    Example: hansard report --latest
    """
    if latest + as_list + only_pending > 1:
        raise Misused("--latest, --list and --pending do not go together")
    config = read_config(**arguments)
    folder = find_store(str(config.data))
    open_store(folder).close()  # of this version, or refused
    reports = Reports(folder)
    if as_list or only_pending:
        _print_list(reports, config, only_pending=only_pending, limit=limit, as_json=as_json)
    elif latest:
        _read_latest(reports, config, reader, as_json=as_json)
    else:
        settings = ReportSettings(
            config.heartbeat_window, config.recipients, config.report_escalation
        )
        written = write_report(folder, settings, now_ns=time.time_ns())
        _print(written.report, written.text, config, as_json=as_json)
        click.echo(f"written: {reports.path(written.report.name)}", err=True)


def _read_latest(reports: Reports, config: Config, reader: str | None, *, as_json: bool) -> None:
    """Print the newest report that the reader has not read, then acknowledge it."""
    who = reader or user_name()
    # One operator: what somebody has read is read. Several: each reads for himself.
    is_personal = bool(reader or config.recipients)
    found = reports.newest_unacknowledged(who if is_personal else None)
    if found is None:
        click.echo(f"No report is unread{f' by {who}' if is_personal else ''}.", err=True)
        if as_json:
            print_json({"report": None})
        return
    text = reports.text(found.name)
    if not as_json:
        _print(found, text, config, as_json=False)
    acknowledged = reports.acknowledge(
        found.name, Authority.of("claimed").decider(who), now_ns=time.time_ns()
    )
    if as_json:
        _print(acknowledged, text, config, as_json=True)
    click.echo(f"acknowledged by {who}: {reports.path(found.name)}", err=True)


def _print(one: Report, text: str, config: Config, *, as_json: bool) -> None:
    if as_json:
        print_json({"report": {**_json(one, config), "text": text}})
        return
    write_bytes((text.encode(),), None)


def _print_list(
    reports: Reports, config: Config, *, only_pending: bool, limit: int, as_json: bool
) -> None:
    found = reports.list()
    if only_pending:
        found = [one.report for one in _pending(found, config)]
    items = found[:limit]
    if as_json:
        print_json({"items": [_json(one, config) for one in items]})
        return
    if not items:
        click.echo("No report waits for anybody." if only_pending else "No report yet.", err=True)
        return
    print_table(
        (Column("REPORT"), Column("WRITTEN (UTC)"), Column("WAITS FOR"), Column("READ BY")),
        (
            (one.name, fmt.day_time(one.written_ns), _waits(one, config), _readers(one))
            for one in items
        ),
    )


def _waits(one: Report, config: Config) -> str:
    waiting = _waiting(one, config)
    if waiting is None:
        return ""
    passed = f" (after {', '.join(waiting.passed_over)})" if waiting.passed_over else ""
    return f"{waiting.recipient or 'anybody'}{passed}"


def _readers(one: Report) -> str:
    known = [person_text(ack.who, ack.method) for ack in one.acks]
    return ", ".join([*known, *(f"{ack.who} (not recorded)" for ack in one.unrecorded)])


def _json(one: Report, config: Config) -> Json:
    waiting = _waiting(one, config)
    if waiting is None:
        return report_json(one, waits_for=None)
    return report_json(
        one,
        waits_for=waiting.recipient,
        passed_over=waiting.passed_over,
        passes_ns=waiting.passes_ns,
    )


def _waiting(one: Report, config: Config) -> Waiting | None:
    return waiting_for(
        one, config.recipients, escalate_ns=config.report_escalation, now_ns=time.time_ns()
    )


def _pending(found: list[Report], config: Config) -> list[Waiting]:
    return pending(
        found, config.recipients, escalate_ns=config.report_escalation, now_ns=time.time_ns()
    )
