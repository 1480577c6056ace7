"""`hansard report`: a page on the state of the store, and who has read it."""

from __future__ import annotations

import time

import click

from hansard_collector.reports import PendingWork, ReportSettings, write_report
from hansard_store.principals.authority import Authority
from hansard_store.reports.files import Report, Reports
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
from hansard_web.cli.store import use_store
from hansard_web.cli.tables import Column, print_records
from hansard_web.reports.service import ReportService, readers_text
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
    folder = use_store(str(config.data))
    reports = ReportService(
        Reports(folder), Authority.of("claimed"), config.recipients, config.report_escalation
    )
    if as_list or only_pending:
        _print_list(reports, only_pending=only_pending, limit=limit, as_json=as_json)
    elif latest:
        is_personal = bool(reader or config.recipients)
        _read_latest(reports, reader or user_name(), is_personal=is_personal, as_json=as_json)
    else:
        settings = ReportSettings(
            config.heartbeat_window, config.recipients, config.report_escalation
        )
        written = write_report(folder, settings, now_ns=time.time_ns())
        _print(reports, written.report, as_json=as_json)
        click.echo(f"written: {reports.reports.path(written.report.name)}", err=True)


def _read_latest(service: ReportService, who: str, *, is_personal: bool, as_json: bool) -> None:
    """Print the newest report that the reader has not read, then acknowledge it.

    One operator: what somebody has read is read. Several: each reads for himself.
    """
    found = service.reports.newest_unacknowledged(who if is_personal else None)
    if found is None:
        click.echo(f"No report is unread{f' by {who}' if is_personal else ''}.", err=True)
        if as_json:
            print_json({"report": None})
        return
    if not as_json:
        _print(service, found, as_json=False)
    acknowledged = service.acknowledge(found.name, by=who)
    if as_json:
        _print(service, acknowledged, as_json=True)
    click.echo(f"acknowledged by {who}: {service.reports.path(found.name)}", err=True)


def _print(service: ReportService, one: Report, *, as_json: bool) -> None:
    if as_json:
        print_json({"report": service.json(one, with_text=True)})
    else:
        write_bytes((service.reports.text(one.name).encode(),), None)


def _print_list(service: ReportService, *, only_pending: bool, limit: int, as_json: bool) -> None:
    items = service.listed(only_pending=only_pending)[:limit]
    if as_json:
        print_json({"items": [service.json(one) for one in items]})
        return
    if not items:
        click.echo("No report waits for anybody." if only_pending else "No report yet.", err=True)
        return
    print_records(
        items,
        {
            Column("REPORT"): lambda one: one.name,
            Column("WRITTEN (UTC)"): lambda one: fmt.day_time(one.written_ns),
            Column("WAITS FOR"): lambda one: _waits(service.waiting(one)),
            Column("READ BY"): readers_text,
        },
    )


def _waits(waiting: PendingWork | None) -> str:
    if waiting is None:
        return ""
    passed = f" (after {', '.join(waiting.passed_over)})" if waiting.passed_over else ""
    return f"{waiting.recipient or 'anybody'}{passed}"
