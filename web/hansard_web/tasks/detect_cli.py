"""`hansard detect`: look for what goes wrong again and again, and open tasks for review."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import click

from hansard_compiler.calls import Json
from hansard_store.detection.rules import LEVELS, RULES, adjusted_rules
from hansard_store.detection.scan import scan
from hansard_store.ids import short_id
from hansard_store.tasks.json import scan_json
from hansard_store.tasks.service import TaskBook
from hansard_web.app.config import RuleNumber, read_rule_count, read_rule_window
from hansard_web.cli.base import (
    Command,
    Misused,
    json_option,
    print_json,
    read_config,
    setting_options,
)
from hansard_web.cli.services import opened_book
from hansard_web.cli.store import reading
from hansard_web.cli.tables import Column, print_table
from hansard_web.tasks.labels import OUTCOMES
from hansard_web.ui import format as fmt

_RULES = ", ".join(f"{rule.name} ({rule.numbers})" for rule in RULES)


@click.command(
    cls=Command,
    epilog=f"Rules: {_RULES}.",
)
@setting_options("data")
@click.option(
    "--threshold", "thresholds", multiple=True, metavar="[RULE=]N",
    help="How often makes a pattern: for every rule, or for one; several times.",
)  # fmt: skip
@click.option(
    "--window", "windows", multiple=True, metavar="[RULE=]24h",
    help="Within what time: for every rule, or for one; several times.",
)  # fmt: skip
@click.option(
    "--min-cases", "leasts", multiple=True, metavar="[RULE=]N",
    help="How many cases a share needs before it is judged; several times.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only look; open no task.")
@json_option
def detect(
    *,
    data: str | None,
    thresholds: Sequence[str],
    windows: Sequence[str],
    leasts: Sequence[str],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Look for what goes wrong again and again; open tasks for review.

    Looks once and ends; run it by hand or by cron. Each pattern opens one task; while that is open,
    it counts on there.

    Example: hansard detect --window 48h --threshold repeated_errors=3
    """
    config = read_config(data=data)
    wanted = adjusted_rules(
        thresholds=dict(config.detect_threshold)
        | dict(_numbers("--threshold", thresholds, read_rule_count)),
        windows_ns=dict(config.detect_window)
        | dict(_numbers("--window", windows, read_rule_window)),
        leasts=dict(config.detect_min_cases)
        | dict(_numbers("--min-cases", leasts, read_rule_count)),
    )
    with reading(data) as connection:
        found = scan(connection, wanted, now_ns=time.time_ns())
        with opened_book(TaskBook, data) as book:
            recorded = book.look_up(found.findings) if dry_run else book.record(found.findings)
        told = scan_json(connection, found, recorded)
    if as_json:
        print_json(told)
        return
    _print(told)


def _numbers(
    option: str, given: Sequence[str], read: Callable[[str], RuleNumber]
) -> Iterator[RuleNumber]:
    """Yield numbers by rule, "" for all of them."""
    for one in given:
        try:
            yield read(one)
        except ValueError as error:
            raise Misused(f"{option} is {one!r}; write {error}") from None


def _print(told: Json) -> None:
    findings = [(level, one) for level in LEVELS for one in told[level]]
    if not findings:
        click.echo("Nothing repeats.", err=True)
        return
    print_table(
        (
            Column("TASK"),
            Column("LEVEL"),
            Column("WHAT", may_cut=True),
            Column("TIMES", is_figure=True),
            Column("SINCE (UTC)"),
            Column("LAST (UTC)"),
            Column(""),
            Column("SAYS", may_cut=True),
        ),
        (
            (
                short_id(one["task_id"] or ""),
                level,
                one["title"],
                f"{one['count']:,}",
                fmt.day_time(int(one["first_ns"])),
                fmt.day_time(int(one["last_ns"])),
                OUTCOMES[one["outcome"]],
                one["sample"] or "",
            )
            for level, one in findings
        ),
    )
    if told["left_off"]:
        click.echo(f"{told['left_off']:,} rarer patterns were left off", err=True)
    if told["opened"]:
        click.echo("decide: hansard tasks show TASK, or the page Reviews", err=True)
