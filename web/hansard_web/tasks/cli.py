"""`hansard tasks`: what the detector found to repeat, and deciding about it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click
from rich.text import Text

from hansard_compiler.calls import Json
from hansard_compiler.models.tasks import Decision
from hansard_store.database.cursors import Page
from hansard_store.detection.rules import LEVELS, RULES, adjusted_rules, rule_text
from hansard_store.detection.scan import scan
from hansard_store.ids import short_id
from hansard_store.principals.model import person_text
from hansard_store.tasks.json import ScanBody, TaskBody, scan_json, task_json
from hansard_store.tasks.rows import STATES, get_task, list_tasks
from hansard_store.tasks.service import TaskService
from hansard_web.app.config import read_rule_count, read_rule_window
from hansard_web.cli.base import (
    Command,
    CommandGroup,
    by_option,
    json_option,
    print_answer,
    print_json,
    print_page,
    read_config,
    read_option,
    setting_options,
)
from hansard_web.cli.store import opened_service, reading
from hansard_web.cli.tables import Column, print_facts, print_lines, print_records
from hansard_web.tasks import labels as words
from hansard_web.tasks.labels import OUTCOMES
from hansard_web.ui import format as fmt


@click.group(cls=CommandGroup)
def tasks() -> None:
    """Tasks for review: list, show, approve, dismiss, done."""


@tasks.command("list")
@setting_options("data")
@click.option(
    "--state", type=click.Choice([*STATES, "open", "all"]), default="open", show_default=True,
    help="open: blocked, or approved and not done yet.",
)  # fmt: skip
@click.option("--level", type=click.Choice(LEVELS), help="Only of this level.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True)
@click.option("--cursor", help="next_cursor of the page before.")
@json_option
def list_(
    *, data: str | None, state: Any, level: Any, limit: int, cursor: str | None, as_json: bool
) -> None:
    """List tasks, the last opened first: those that are open, unless filtered.

    Example: hansard tasks list --state all --level action
    """
    filters = None if state == "all" else state
    with reading(data) as connection:
        page = list_tasks(connection, state=filters, level=level, limit=limit, cursor=cursor)
        items = [task_json(connection, one) for one in page.items]
    if not items and filters == "open" and not as_json:
        click.echo("No task is open. `hansard detect` looks for what repeats.", err=True)
        return
    print_page(Page(items, page.next_cursor), dict, _print_list, as_json=as_json)


def _print_list(items: Sequence[TaskBody]) -> None:
    print_records(
        items,
        {
            Column("TASK"): lambda one: short_id(one["task_id"]),
            Column("STATE"): _state,
            Column("LEVEL"): lambda one: one["level"],
            Column("WHAT", may_cut=True): lambda one: one["title"],
            Column("TIMES", is_figure=True): lambda one: f"{one['count']:,}",
            Column("LAST (UTC)"): lambda one: fmt.day_time(int(one["last_ns"])),
            Column("SAYS", may_cut=True): lambda one: one["sample"] or "",
        },
    )


@tasks.command()
@click.argument("task_id")
@setting_options("data")
@json_option
def show(*, task_id: str, data: str | None, as_json: bool) -> None:
    """Show a task: what repeats, how often, since when, and where.

    Example: hansard tasks show 1f8b2c3d
    """
    with reading(data) as connection:
        body = {"task": task_json(connection, get_task(connection, task_id))}
    print_answer(body, _print, as_json=as_json)


def _deciding(function: Any) -> Any:
    """Add what every decision takes."""
    for add in (
        json_option,
        setting_options("data", "retention"),
        by_option("Who decides. Default: the user of this machine."),
        click.argument("task_id"),
    ):
        function = add(function)
    return function


_note = click.option("--note", help="Why, or what is to be done; kept with the task.")


@tasks.command()
@_deciding
@_note
def approve(**options: Any) -> None:
    """Say that a blocked task is to be worked on. A supersession that it proposes is applied.

    Example: hansard tasks approve 1f8b2c3d --note "the fixture is missing in CI"
    """
    _decide("approve", **options)


@tasks.command()
@_deciding
@_note
def dismiss(**options: Any) -> None:
    """Close a blocked task: nothing is to be done. It opens again when it repeats as often.

    Example: hansard tasks dismiss 1f8b2c3d --note "the service was down for an hour"
    """
    _decide("dismiss", **options)


@tasks.command()
@_deciding
def done(**options: Any) -> None:
    """Close an approved task: what was to be done is done.

    Example: hansard tasks done 1f8b2c3d
    """
    _decide("done", note=None, **options)


def _decide(
    decision: Decision, *, task_id: str, note: str | None, by: str, data: str | None,
    retention: str | None, as_json: bool,
) -> None:  # fmt: skip
    fields = {"decision": decision, "note": note, "by": by}
    with opened_service(TaskService, data, retention) as service:
        made = service.decide_json(task_id, fields)
    if not as_json:
        click.echo(f"{made.state} {made.task_id}")
        return
    with reading(data) as connection:
        print_json({"task": task_json(connection, made)})


def _state(one: TaskBody) -> Text:
    _, word = words.STATES[one["state"]]
    return Text(word, style="yellow" if one["review"] else "")


def _print(body: Json) -> None:
    task = body["task"]
    decision, done = task["decision"] or {}, task["done"] or {}
    rule = rule_text(task["rule"], threshold=task["threshold"], window_ns=int(task["window_ns"]))
    print_lines([task["title"], "", task["description"], ""])
    print_facts(
        (
            ("task", task["task_id"]),
            ("state", words.STATES[task["state"]][1]),
            ("level", task["level"]),
            ("rule", f"{task['rule']}: {rule}"),
            ("times", f"{task['count']:,}"),
            ("first", f"{fmt.day_time(int(task['first_ns']))} UTC"),
            ("last", f"{fmt.day_time(int(task['last_ns']))} UTC"),
            ("says", task["sample"] or ""),
            (
                "decided",
                f"by {person_text(decision['by'], decision['method'])}" if decision else "",
            ),
            ("note", decision.get("note") or ""),
            ("done", f"by {person_text(done['by'], done['method'])}" if done else ""),
        )
    )
    for one in task["proposes"]:
        score = "" if one["score"] is None else f", score {one['score']:.2f}"
        pair = f"{one['older'] or 'gone'} superseded by {one['newer'] or 'gone'}"
        print_lines([f"{one['state']}: {pair}: {one['rationale']} ({one['judge']}{score})"])
    print_lines(["", "where (the first one and the newest):"])
    print_records(
        task["evidence"],
        {
            Column("WHEN (UTC)"): lambda one: fmt.day_time(int(one["ns"])),
            Column("WHAT"): lambda one: one["kind"],
            Column("ID"): lambda one: one["id"],
        },
    )


# `hansard detect`: look for what goes wrong again and again, and open tasks for review.

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
    rules = adjusted_rules(
        thresholds=dict(config.detect_threshold)
        | dict(read_option("--threshold", one, read_rule_count) for one in thresholds),
        windows_ns=dict(config.detect_window)
        | dict(read_option("--window", one, read_rule_window) for one in windows),
        leasts=dict(config.detect_min_cases)
        | dict(read_option("--min-cases", one, read_rule_count) for one in leasts),
    )
    with reading(data) as connection:
        found = scan(connection, rules, now_ns=time.time_ns())
        with opened_service(TaskService, data) as service:
            recorded = (
                service.look_up(found.findings) if dry_run else service.record(found.findings)
            )
        body = scan_json(connection, found, recorded)
    print_answer(body, _print_found, as_json=as_json)


def _print_found(body: ScanBody) -> None:
    findings = [(level, one) for level in LEVELS for one in body[level]]
    if not findings:
        click.echo("Nothing repeats.", err=True)
        return
    print_records(
        findings,
        {
            Column("TASK"): lambda found: short_id(found[1]["task_id"] or ""),
            Column("LEVEL"): lambda found: found[0],
            Column("WHAT", may_cut=True): lambda found: found[1]["title"],
            Column("TIMES", is_figure=True): lambda found: f"{found[1]['count']:,}",
            Column("SINCE (UTC)"): lambda found: fmt.day_time(int(found[1]["first_ns"])),
            Column("LAST (UTC)"): lambda found: fmt.day_time(int(found[1]["last_ns"])),
            Column(""): lambda found: OUTCOMES[found[1]["outcome"]],
            Column("SAYS", may_cut=True): lambda found: found[1]["sample"] or "",
        },
    )
    if body["left_off"]:
        click.echo(f"{body['left_off']:,} rarer patterns were left off", err=True)
    if body["opened"]:
        click.echo("decide: hansard tasks show TASK, or the page Reviews", err=True)
