"""Looking after a store: verify, gc."""

from __future__ import annotations

import dataclasses
import os
import time
from functools import partial
from pathlib import Path

import click

from hansard_collector.derivation.rebuild import rebuild as rebuild_store
from hansard_collector.derivation.verification import verify_derived
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.repair import repair_schema
from hansard_store.database.data_folder import DataFolder
from hansard_store.maintenance.backup import Backup, back_up
from hansard_store.maintenance.backup import restore as restore_store
from hansard_store.maintenance.garbage import purge as purge_store
from hansard_store.verification.integrity import IntegrityReport, verify_store
from hansard_web.app.config import data_folder
from hansard_web.app.old_runs import Cleaned, Limits, clean
from hansard_web.cli.base import (
    Command,
    CommandGroup,
    Failed,
    json_option,
    print_json,
    read_config,
    setting_options,
    user_name,
)
from hansard_web.cli.store import find_store, maintaining, open_store, reading, use_store
from hansard_web.cli.tables import print_facts, print_lines, progress
from hansard_web.context.recompile import Recompiled, RecompileVerdict, recompile
from hansard_web.ui import format as fmt

_EXITS = {
    RecompileVerdict.EQUAL: 0,
    RecompileVerdict.DIFFERS: 1,
    RecompileVerdict.REDACTED: 2,
    RecompileVerdict.MISSING: 2,
}


class _VerifyGroup(Command, CommandGroup):
    """A command by itself, with verbs."""


@click.group(cls=_VerifyGroup, invoke_without_command=True)
@click.pass_context
@setting_options("data", "heads_copy")
@click.option(
    "--every", default=1, show_default=True, type=click.IntRange(1), help="Look at every nth row."
)
@click.option("--deep", is_flag=True, help="Derive every run again in a copy, and compare.")
@json_option
def verify(
    ctx: click.Context,
    *,
    data: str | None,
    heads_copy: str | None,
    every: int,
    deep: bool,
    as_json: bool,
) -> None:
    """Check the store against itself and its audit log, or a compile.

    Holds against what was sealed into the audit log: every row that cannot be derived again
    (spans, logs, metrics, memory, policy, checks, annotations, tasks, transcripts, payloads,
    tombstones, replays, ledger). Against their events: approvals and claims. Against the heads
    that were kept: the audit log, its drafts and its notes. Against their digests: contents,
    texts, lists of messages, payload files. Receipts, compiles and stored results: against one
    another. Rows that were written since the last seal, some seconds ago, are counted apart.
    With --deep every other row is held against what its spans give when they are derived again,
    which takes as long as a rebuild and twice the database's size on disk. Names table and row;
    ends with 1 when something differs.

    Example: hansard verify
    """
    if ctx.invoked_subcommand is None:
        copy = read_config(data=data, heads_copy=heads_copy).heads_copy
        _verify_store(data, every=every, heads_copy=copy, deep=deep, as_json=as_json)


def _verify_store(
    data: str | None, *, every: int, heads_copy: str | None, deep: bool, as_json: bool
) -> None:
    folder = use_store(data)
    with progress() as tell:
        report = verify_store(folder, every=every, heads_copy=heads_copy, progress=tell)
        if deep:
            derived = verify_derived(folder, progress=tell)
            report = dataclasses.replace(report, findings=[*report.findings, *derived])
    if as_json:
        findings = [dataclasses.asdict(finding) for finding in report.findings]
        print_json(
            {"rows": report.rows, "findings": findings, "notes": report.notes, **_seals(report)}
        )
    else:
        for note in report.notes:
            print_lines([fmt.printable(f"note: {note}")])
        for one in report.findings:
            note = "" if one.is_certain else "note: "
            print_lines([fmt.printable(f"{note}{one.check}: {one.table} {one.row}: {one.message}")])
    if not report.is_sound:
        raise Failed(
            f"{fmt.plural(len(report.broken), 'finding')}; restore a backup, "
            "`hansard rebuild` if only derived rows are named, or `hansard repair` if only the "
            "schema is"
        )
    if not as_json:
        click.echo(
            f"sound: {report.rows:,} rows read back, {report.seals.rows:,} held by the chain"
        )
        _print_unsealed(report)


def _seals(report: IntegrityReport) -> dict[str, object]:
    seals = report.seals
    return {
        "sealed_rows": seals.rows,
        "unsealed": seals.unsealed,
        "sealed_since_ns": None if seals.since_ns is None else str(seals.since_ns),
        "last_seal_ns": None if seals.last_ns is None else str(seals.last_ns),
        "deleted_runs": seals.tombstones,
        "verified_tombstones": seals.held_tombstones,
        "altered_schema_rows": seals.altered_rows,
        "altered_schema_events": seals.altered_events,
    }


def _print_unsealed(report: IntegrityReport) -> None:
    seals = report.seals
    if seals.tombstones:
        held = f"{seals.held_tombstones:,} of {fmt.plural(seals.tombstones, 'tombstone')}"
        click.echo(f"deleted: {fmt.plural(seals.tombstones, 'run')}, {held} held by the chain")
    if seals.since_ns is None:
        click.echo("not sealed yet: no row is held by the chain; a server seals them in seconds")
    else:
        click.echo(f"protected since {fmt.day_time(seals.since_ns)} UTC")
        if seals.altered_rows:
            numbers = ", ".join(map(str, seals.altered_events))
            rows = fmt.plural(seals.altered_rows, "row")
            click.echo(f"{rows} sealed after the schema was altered: see event {numbers}")
        if seals.unsealed:
            last = fmt.day_time(seals.last_ns or 0)
            text = fmt.plural(seals.unsealed, "row or change", "rows and changes")
            click.echo(f"{text} since the last seal ({last} UTC) not sealed yet")


@verify.command("compile")
@click.argument("compilation_id")
@setting_options("data")
@json_option
@click.pass_context
def verify_compile(
    ctx: click.Context, *, compilation_id: str, data: str | None, as_json: bool
) -> None:
    """Make a compile again from its stored request, and compare the hashes.

    Exits 0 when they are equal, 1 when they differ, 2 when it cannot be made again: its request
    was redacted, or something it takes is missing.

    Example: hansard verify compile 4bf92f35
    """
    named = data or (ctx.parent.params["data"] if ctx.parent else None)
    with reading(named) as connection:
        found = recompile(connection, compilation_id)
    if as_json:
        print_json({**dataclasses.asdict(found), "verdict": found.verdict.value})
    else:
        _print_recompiled(found)
    ctx.exit(_EXITS[found.verdict])


def _print_recompiled(found: Recompiled) -> None:
    facts = [
        ("compile", found.compilation_id),
        ("step", found.step_id),
        ("verdict", found.verdict.value),
        ("recorded", found.recorded_hash or ""),
        ("found", found.found_hash or ""),
    ]
    print_facts([*facts, *(("why", reason) for reason in found.reasons)])


@click.command(cls=Command)
@setting_options("data")
@json_option
def repair(*, data: str | None, as_json: bool) -> None:
    """Restore the database's schema where somebody altered it.

    Triggers, views, tables and unique indexes that are not Hansard's are removed; those that are
    missing or altered are made again, altered tables with the rows that they have. The database is
    kept as it was, beside it, and the audit log says what was mended, and by whom
    (schema.repaired). Rows that an added trigger wrote stay as they are: the next seal, and
    `hansard verify`, say how many were written meanwhile. Changes nothing where nothing differs.

    Example: hansard repair
    """
    made = repair_schema(find_store(data), by=user_name())
    if as_json:
        print_json({"mended": [str(one) for one in made.mended], "copy": made.kept_as})
        return
    for one in made.mended:
        print_lines([fmt.printable(f"mended: {one}")])
    if made.kept_as is None:
        click.echo("nothing to mend: the schema is Hansard's")
    else:
        click.echo(f"the database as it was is kept as {made.kept_as}; now `hansard verify`")


@click.command(cls=Command)
@setting_options("data", "config", "keep", "max_disk")
@click.option("--purge", is_flag=True, help="Leave no byte of what is gone; writes the file anew.")
@json_option
def gc(*, purge: bool, as_json: bool, **arguments: str) -> None:
    """Delete old runs and remove what nothing uses.

    Without --keep and --max-disk only what deletions left behind is removed. Pinned runs stay.

    Example: hansard gc --keep 30d --max-disk 20GB
    """
    config = read_config(**arguments)
    folder = find_store(str(config.data))
    limits = Limits(config.keep, config.max_disk)
    with maintaining(folder, secure=purge) as connection, progress() as tell:
        cleaned = clean(folder, connection, limits, now_ns=time.time_ns(), progress=tell)
        if purge:
            purge_store(connection)
    if as_json:
        print_json(dataclasses.asdict(cleaned))
    else:
        _print(cleaned)


def _print(cleaned: Cleaned) -> None:
    rows = dataclasses.asdict(cleaned.collected)
    removed = ", ".join(f"{count:,} {what}" for what, count in rows.items() if count)
    click.echo(
        f"{fmt.plural(cleaned.too_old, 'run')} too old, {cleaned.too_much:,} over the size; "
        f"removed {removed or 'nothing'}; {fmt.file_size(cleaned.size_bytes)} now"
    )


# `hansard rebuild`: derived rows made again.


@click.command(cls=Command)
@setting_options("data")
@click.option("--only-old", is_flag=True, help="Only what an older version derived.")
@json_option
def rebuild(*, data: str | None, only_old: bool, as_json: bool) -> None:
    """Derive everything again from what was received.

    For stores of an older version, whose spans a newer one reads better. A server may go on
    receiving meanwhile; interrupted, the next rebuild goes on from there.

    Example: hansard rebuild --only-old
    """
    folder = use_store(data)
    with progress() as tell:
        rebuilt = rebuild_store(folder, only_old=only_old, progress=partial(tell, "runs"))
    if as_json:
        print_json(dataclasses.asdict(rebuilt))
    else:
        click.echo(f"{fmt.plural(rebuilt.runs, 'run')}, {rebuilt.spans:,} spans derived again")


# Copies of a whole store: backup, restore.


@click.command(cls=Command)
@click.argument("target", type=click.Path(path_type=Path))
@setting_options("data")
@click.option("--no-key", is_flag=True, help="Leave the key out; redactions cannot be compared.")
@json_option
def backup(*, target: Path, data: str | None, no_key: bool, as_json: bool) -> None:
    """Copy the store while it is used.

    TARGET is a new folder, laid out like the data folder, or an archive if it ends in .tar.zst.

    Example: hansard backup friday.tar.zst
    """
    folder = use_store(data)
    with progress() as tell:
        made = back_up(folder, target, with_key=not no_key, progress=tell)
    _report(made, f"backed up to {target}", as_json=as_json)


@click.command(cls=Command)
@click.argument("source", type=click.Path(path_type=Path))
@setting_options("data", "heads_copy")
@json_option
def restore(*, source: Path, data: str | None, heads_copy: str | None, as_json: bool) -> None:
    """Put a backup in an empty data folder.

    Where this store had come further here, the older state is taken for the valid one, and the
    audit log says so: the restored folder may run approved actions.

    Example: hansard restore friday.tar.zst --data ./restored
    """
    folder = DataFolder(data_folder(data, os.environ))
    with progress() as tell:
        made = restore_store(source, folder, progress=tell)
    config = read_config(data=str(folder.path), heads_copy=heads_copy)
    open_store(folder).close()
    with ApprovalService(folder, source="cli", heads_copy=config.heads_copy) as approvals:
        approvals.accept_head(by=user_name(), note="restored from a backup")
    _report(made, f"restored to {folder.path}", as_json=as_json)


def _report(made: Backup, done: str, *, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(made))
        return
    held = [fmt.plural(made.spans, "span"), fmt.plural(made.blobs, "large payload")]
    if not made.has_key:
        held.append("no key")
    print_lines(
        [fmt.printable(f"{done}: {', '.join(held)}, as of {fmt.day_time(made.created_ns)} UTC")]
    )
