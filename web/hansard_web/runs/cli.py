"""`hansard runs`: list, show, export, delete, pin; `hansard tail`: runs as they happen."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import click

from hansard_collector.derived_context.context import run_breaks
from hansard_compiler.errors import MIN_PREFIX_DIGITS, AmbiguousIdError, NotFoundError
from hansard_store.database.readers import data_version
from hansard_store.maintenance.deletion import delete_run, pin_run
from hansard_store.maintenance.garbage import collect_garbage
from hansard_store.maintenance.garbage import purge as purge_store
from hansard_store.runs.filters import RUN_SORTS, parse_sort
from hansard_store.runs.queries import (
    RunItem,
    changed_runs,
    find_trace_id,
    get_run,
    last_change,
    list_runs,
)
from hansard_store.runs.status import TokenSums
from hansard_store.runs.users import user_traces
from hansard_store.runs.values import VALUE_KEYS, filter_values
from hansard_store.steps.agent_graph import agent_graph
from hansard_store.steps.cycles import find_loops
from hansard_store.steps.queries import RunTree, TreeRow, get_tree, tree_rows
from hansard_store.steps.usage_sums import usage_sums
from hansard_web.annotations.labels import score_chips
from hansard_web.api.bodies import (
    CacheBreaks,
    LoopBody,
    cache_breaks_body,
    graph_body,
    loop_bodies,
    row_body,
    run_body,
)
from hansard_web.api.queries import limit_of, run_filter_of
from hansard_web.app.readers import Readers
from hansard_web.cli.base import (
    Command,
    CommandGroup,
    confirm,
    json_option,
    print_json,
    setting_options,
    user_name,
    write_bytes,
)
from hansard_web.cli.store import find_store, maintaining, reading
from hansard_web.cli.tables import (
    Column,
    plain,
    print_facts,
    print_lines,
    print_records,
    print_table,
    progress,
    status_text,
)
from hansard_web.runs.export import open_export
from hansard_web.runs.records import by_start, run_record, step_records
from hansard_web.ui import format as fmt

_MOST_STEPS = 2_000  # printed; a run may have a million
_POLL_S = 0.25
_MOST_LOOPS = 5  # named; --json has all
_MOST_CHANGES = 500  # changes read at once


@click.group(cls=CommandGroup)
def runs() -> None:
    """Runs: list, show, export, delete, pin."""


@runs.command("list")
@setting_options("data")
@click.option(
    "--q", default="", help='Words of recorded content: words, "a phrase", prefix*, -word.'
)
@click.option(
    "--kind",
    help="agent, or other: without an agent, model, tool or gate step; any is the default.",
)
@click.option(
    "--status",
    multiple=True,
    help="ok, error, open, no_end, blocked (it waits for a decision) or cancelled.",
)
@click.option("--agent", multiple=True, help="Name of an agent.")
@click.option("--model", multiple=True, help="Name of a model.")
@click.option("--tool", multiple=True, help="Name of a tool.")
@click.option("--service", multiple=True, help="service.name of the resource.")
@click.option("--tag", multiple=True, help="A tag on it or a step; several times: each.")
@click.option("--score", multiple=True, metavar="NAME[:LABEL|>=N]", help="A score, the same way.")
@click.option("--conversation", help="Conversation id.")
@click.option("--group", help="Group id: the traces of one prompt of one conversation.")
@click.option("--user", help="User id.")
@click.option("--error", help="Error id: runs with an error of this group.")
@click.option("--receipts", help="yes or no: whether its context decisions were recorded.")
@click.option("--attribute", multiple=True, metavar="KEY:VALUE", help="An attribute of any span.")
@click.option("--since", help="Started at or after: 24h (ago), 2026-01-31, or with a time.")
@click.option("--until", help="Started before.")
@click.option("--min-duration-ms", help="At least this long.")
@click.option("--min-cost", help="At least this many US dollars.")
@click.option(
    "--sort",
    default="-first_seen",
    show_default=True,
    help=f"{', '.join(RUN_SORTS)}; - for falling.",
)
@click.option("--limit", default="50", show_default=True, help="1 to 500.")
@click.option("--cursor", help="next_cursor of the page before.")
@json_option
def list_(
    *, data: str | None, sort: str, limit: str, cursor: str | None, as_json: bool, **filters: Any
) -> None:
    """List runs, the newest first.

    Example: hansard runs list --status error --since 2026-01-31
    """
    with reading(data) as connection:
        page = list_runs(
            connection,
            run_filter_of(filters),
            now_ns=time.time_ns(),
            sort=parse_sort(sort),
            limit=limit_of(limit),
            cursor=cursor,
        )
    if as_json:
        items = [run_body(item) for item in page.items]
        print_json({"items": items, "next_cursor": page.next_cursor})
        return
    print_runs(page.items)
    if page.next_cursor:
        click.echo(f"more: --cursor {page.next_cursor}", err=True)


@runs.command()
@click.argument("key", type=click.Choice(VALUE_KEYS))
@click.argument("like", default="")
@setting_options("data")
@click.option("--limit", default="50", show_default=True, help="1 to 500.")
@json_option
def values(*, key: str, like: str, data: str | None, limit: str, as_json: bool) -> None:
    """List the values of a filter of runs, those of most runs first; LIKE: letters of them.

    Example: hansard runs values agent desk
    """
    with reading(data) as connection:
        found = filter_values(connection, key, like=like, limit=limit_of(limit))
    if as_json:
        items = [{"value": one.value, "runs": one.runs} for one in found.items]
        print_json({"items": items, "is_complete": found.is_complete})
        return
    columns = {
        Column("VALUE"): lambda one: one.value,
        Column("RUNS", is_figure=True): lambda one: "" if one.runs is None else f"{one.runs:,}",
    }
    print_records(found.items, columns)
    if not found.is_complete:
        click.echo("more: give letters of the value, or a larger --limit", err=True)


@runs.command()
@click.argument("run_id")
@setting_options("data")
@json_option
def show(*, run_id: str, data: str | None, as_json: bool) -> None:
    """Show a run and its steps; the first eight digits of its id suffice.

    Example: hansard runs show 4bf92f35
    """
    now_ns = time.time_ns()
    with reading(data) as connection:
        run = get_run(connection, run_id, now_ns=now_ns)
        tree = get_tree(connection, run.run_id)
        window = tree.tree.window(first=0, count=_MOST_STEPS)
        steps = tree_rows(connection, tree, window, now_ns=now_ns)
        ids = _short_ids(connection, tree, steps)
        sums = usage_sums(connection, run.id, tree.tree)
        loops = loop_bodies(connection, tree, find_loops(tree.tree), now_ns=now_ns)
        breaks = cache_breaks_body(run_breaks(connection, run.id), tree)
    if as_json:
        print_json(
            {
                **run_body(run),
                "loops": loops,
                "cache_breaks": breaks,
                "steps": [row_body(step, sums) for step in steps],
            }
        )
    else:
        _print_run(run, loops, breaks)
        click.echo()
        _print_steps(steps, ids)
    if (more := len(tree.tree) - len(steps)) > 0:
        click.echo(f"{more:,} more steps; the browser shows all", err=True)


@runs.command()
@click.argument("run_id")
@setting_options("data")
@json_option
def graph(*, run_id: str, data: str | None, as_json: bool) -> None:
    """Show who called what in a run: agents, tools and models, with calls, errors and cost.

    Example: hansard runs graph 4bf92f35
    """
    with reading(data) as connection:
        run = get_run(connection, run_id, now_ns=time.time_ns())
        tree = get_tree(connection, run.run_id)
        sums = usage_sums(connection, run.id, tree.tree)
        found = agent_graph(connection, run.run_id, tree.tree, sums)
    if as_json:
        print_json(graph_body(found, tree))
        return
    print_table(
        (
            Column("FROM", may_cut=True),
            Column("TO", may_cut=True),
            Column("KIND"),
            Column("CALLS", is_figure=True),
            Column("FAILED", is_figure=True),
            Column("TIME", is_figure=True),
            Column("TOKENS", is_figure=True),
            Column("COST", is_figure=True),
        ),
        (
            (
                found.nodes[edge.source].name or run.name,
                found.nodes[edge.target].name,
                "hand-off" if edge.kind == "hand-off" else found.nodes[edge.target].kind,
                fmt.count(edge.part.calls),
                fmt.count(edge.part.errors) if edge.part.errors else "",
                fmt.duration(edge.part.duration_ns),
                fmt.tokens(edge.part.tokens) if edge.part.tokens else "",
                cost_text(edge.part.cost_usd_nano),
            )
            for edge in found.edges
        ),
    )


@runs.command()
@click.argument("run_id")
@setting_options("data")
def record(*, run_id: str, data: str | None) -> None:
    """Print a run as a RunRecord and its steps as StepRecords, a line each.

    docs/schemas has their JSON schemas. Steps stand in the order they began.

    Example: hansard runs record 4bf92f35 > record.jsonl
    """
    now_ns = time.time_ns()
    with reading(data) as connection:
        run = get_run(connection, run_id, now_ns=now_ns)
        tree = get_tree(connection, run.run_id)
        order = by_start(tree)
        click.echo(json.dumps(run_record(connection, run, tree)))
        for first in range(0, len(order), _MOST_STEPS):
            places = order[first : first + _MOST_STEPS]
            for one in step_records(connection, tree, places, first=first, now_ns=now_ns):
                click.echo(json.dumps(one))


@runs.command()
@click.argument("run_id")
@setting_options("data")
@click.option(
    "--format",
    "form",
    type=click.Choice(["otlp-json", "otlp-proto", "jsonl", "html"]),
    default="otlp-json",
    show_default=True,
    help="How it is written.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file; else stdout.")
def export(*, run_id: str, data: str | None, form: str, output: Path | None) -> None:
    """Write a run as the OTLP it came in; any receiver takes it.

    Example: hansard runs export 4bf92f35 -o run.json
    """
    readers = Readers(find_store(data))
    try:
        write_bytes(open_export(readers, run_id, form).body, output)
    finally:
        readers.close()


@runs.command()
@click.argument("run_ids", nargs=-1)
@setting_options("data")
@click.option("--user", help="All runs that name this user id.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--purge", is_flag=True, help="Leave no byte of them; writes the whole file anew.")
@json_option
def delete(
    *,
    run_ids: tuple[str, ...],
    data: str | None,
    user: str | None,
    yes: bool,
    purge: bool,
    as_json: bool,
) -> None:
    """Delete runs with everything in them, by id or all of one user.

    Spans of them that come later are counted and not stored. `hansard gc` gives the room back.

    Example: hansard runs delete 4bf92f35 --yes
    """
    folder = find_store(data)
    chosen = _runs_to_delete(data, run_ids, user)
    confirm(f"delete {fmt.plural(len(chosen), 'run')} for good?", yes=yes)
    with maintaining(folder, secure=purge) as connection, progress() as tell:
        stones = [
            delete_run(
                connection,
                trace_id,
                reason="purge" if purge else "by hand",
                by=user_name(),
                progress=partial(tell, "spans and logs"),
            )
            for trace_id in chosen
        ]
        if purge:
            collect_garbage(folder, connection, progress=tell)
            purge_store(connection)
    deleted = [{"run_id": s.trace_id.hex(), "spans": s.span_count} for s in stones]
    if as_json:
        print_json({"deleted": deleted})
        return
    for one in deleted:
        click.echo(f"deleted {one['run_id']} ({one['spans']:,} spans)")


def _runs_to_delete(data: str | None, run_ids: Sequence[str], user: str | None) -> list[bytes]:
    if bool(run_ids) == (user is not None):
        raise click.UsageError("name runs by their ids, or a user with --user")
    with reading(data) as connection:
        if user is not None:
            found = user_traces(connection, user)
            if not found:
                raise NotFoundError("user", user)
            return found
        now_ns = time.time_ns()
        return [bytes.fromhex(get_run(connection, one, now_ns=now_ns).run_id) for one in run_ids]


@runs.command()
@click.argument("run_ids", nargs=-1, required=True)
@setting_options("data")
@click.option("--off", is_flag=True, help="Let them go again.")
def pin(*, run_ids: tuple[str, ...], data: str | None, off: bool) -> None:
    """Keep runs from --keep and --max-disk.

    Example: hansard runs pin 4bf92f35
    """
    folder = find_store(data)
    with reading(data) as connection:
        trace_ids = [get_run(connection, one, now_ns=time.time_ns()).run_id for one in run_ids]
    with maintaining(folder) as connection:
        for run_id in trace_ids:
            pin_run(connection, bytes.fromhex(run_id), pinned=not off)
            click.echo(f"{'unpinned' if off else 'pinned'} {run_id}")


# ---- for people


def print_runs(items: Sequence[RunItem]) -> None:
    """Print a table of runs."""
    print_table(
        (
            Column("RUN"),
            Column("STARTED (UTC)"),
            Column("STATUS"),
            Column("NAME", may_cut=True),
            Column("TOOK", is_figure=True),
            Column("STEPS", is_figure=True),
            Column("CALLS", is_figure=True),
            Column("TOKENS", is_figure=True),
            Column("COST", is_figure=True),
        ),
        (
            (
                run.run_id[:12],
                fmt.day_time(run.started_ns),
                status_text(run.status),
                run.name,
                duration_text(run.duration_ns),
                fmt.count(run.step_count),
                fmt.count(run.model_calls),
                tokens_text(run.tokens),
                cost_text(run.cost_usd_nano),
            )
            for run in items
        ),
    )


def _print_run(run: RunItem, loops: Sequence[LoopBody], breaks: CacheBreaks | None) -> None:
    print_facts(
        (
            ("run", run.run_id),
            ("name", run.name),
            ("kind", run.kind),
            ("status", run.status),
            ("started", fmt.iso_time(run.started_ns)),
            ("took", duration_text(run.duration_ns)),
            ("agent", run.agent_name or ""),
            ("conversation", run.conversation_id or ""),
            ("group", run.group_id or ""),
            ("user", run.user_id or ""),
            ("models", ", ".join(run.models)),
            ("services", ", ".join(run.service_names)),
            ("model calls", fmt.count(run.model_calls)),
            ("tool calls", fmt.count(run.tool_calls)),
            ("tokens", tokens_text(run.tokens)),
            ("cost", cost_text(run.cost_usd_nano)),
            ("loops", "; ".join(_loop_text(one) for one in loops[:_MOST_LOOPS])),
            ("cache breaks", _breaks_text(breaks)),
            ("tags", ", ".join(run.marks.tags)),
            ("scores", ", ".join(chip.title for chip in score_chips(run.marks))),
            ("pinned", "yes" if run.pinned else ""),
            ("first input", fmt.shorten(run.first_input or "", 200)),
            ("last output", fmt.shorten(run.last_output or "", 200)),
        )
    )


def _loop_text(loop: LoopBody) -> str:
    names = ", ".join(dict.fromkeys(loop["steps"]))
    return f"{fmt.shorten(names, 100)} ×{loop['times']}, same arguments"


def _breaks_text(breaks: CacheBreaks | None) -> str:
    if breaks is None or not breaks["breaks"]:
        return ""
    lost = fmt.tokens(breaks["lost_tokens"])
    return f"{fmt.count(breaks['breaks'])}, about {lost} tokens paid again"


def _short_ids(connection: apsw.Connection, tree: RunTree, steps: Sequence[TreeRow]) -> list[str]:
    """Return ids as other commands take them: 8 digits of run and span where those are unique."""
    run = tree.run_id[:MIN_PREFIX_DIGITS]
    try:
        find_trace_id(connection, run)
    except AmbiguousIdError:
        run = tree.run_id
    nodes = tree.tree.nodes
    beginnings = {node.span_id[: MIN_PREFIX_DIGITS // 2] for node in nodes}
    if len(beginnings) == len(nodes):
        return [f"{run}-{row.step.span_id[:MIN_PREFIX_DIGITS]}" for row in steps]
    return [run + row.step.step_id[len(tree.run_id) :] for row in steps]


def _print_steps(steps: Sequence[TreeRow], ids: Sequence[str]) -> None:
    print_table(
        (
            Column("STEP", may_cut=True),
            Column("ROLE"),
            Column("STATUS"),
            Column("TOOK", is_figure=True),
            Column("TOKENS", is_figure=True),
            Column("ID"),
        ),
        (
            (
                f"{'  ' * row.depth}{row.step.name}",
                row.step.role,
                status_text(row.step.status),
                duration_text(row.step.duration_ns),
                tokens_text(row.step.tokens) if row.step.tokens else "",
                step_id,
            )
            for row, step_id in zip(steps, ids, strict=True)
        ),
    )


def duration_text(duration_ns: int | None) -> str:
    """Return a duration; nothing while there is no end."""
    return "" if duration_ns is None else fmt.duration(duration_ns)


def tokens_text(tokens: TokenSums | None) -> str:
    """Return input and output together; a dash where no call reported any."""
    return "–" if tokens is None else fmt.tokens((tokens.input or 0) + (tokens.output or 0))


def cost_text(usd_nano: int | None) -> str:
    """Return an amount; a dash where it is not known."""
    return "–" if usd_nano is None else fmt.money(usd_nano)


# ---- as they happen


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
            _print_line(run, as_json=as_json)


def _follow(connection: apsw.Connection, *, after: int, stop: threading.Event) -> Iterator[RunItem]:
    """Yield runs in the order of their changes, until stopped."""
    seen_version = -1
    while not stop.is_set():
        # Read before the changes: what is committed in between is seen in the next round.
        version = data_version(connection)
        if version == seen_version:
            stop.wait(_POLL_S)
            continue
        changes = changed_runs(
            connection, since_change=after, now_ns=time.time_ns(), limit=_MOST_CHANGES
        )
        yield from changes
        after = max((run.change_seq for run in changes), default=after)
        if len(changes) < _MOST_CHANGES:
            seen_version = version


def _print_line(run: RunItem, *, as_json: bool) -> None:
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
