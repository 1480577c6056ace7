"""`hansard spool`: what waits on disk for the collector. Needs the SDK alone."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from hansard._config.settings import Settings, load_settings
from hansard._export.dropped import DropReason, Losses, load_losses
from hansard._export.orphaned_spools import OrphanedSpools, sender_of
from hansard._export.otlp.batches import Courier, items_of
from hansard._export.otlp.exporter import ACCEPTED, ExportOutcome, ExportResponse
from hansard._export.spool import (
    FOLDER,
    SpoolFile,
    SpoolKind,
    abandoned,
    files_of,
    process_folders,
    refused_files,
    remove,
)
from hansard._runtime.locks import try_lock
from hansard_compiler.errors import HansardError
from hansard_compiler.terminal import printable

_data_option = click.option(
    "--data", metavar="DIR", help="The folder of the spool, the server's data folder by default."
)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """What one process has on disk."""

    process: str
    is_living: bool
    spans: int
    logs: int
    payloads: int
    open_spans: int
    bytes: int
    oldest_s: int | None  # seconds ago
    lost: int  # counted, and not yet reported to the collector


@click.group()
def spool() -> None:
    """What waits on disk because the collector did not answer."""


def _settings(**options: str | None) -> Settings:
    try:
        return load_settings(options)
    except HansardError as error:
        raise click.UsageError(str(error)) from None


@spool.command("list")
@_data_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def list_(data: str | None, as_json: bool) -> None:
    """Show what waits, by process. Example: hansard spool list"""
    root = _settings(data=data).data / FOLDER
    found = [_waiting(path) for path in process_folders(root)]
    refused = refused_files(root)
    if as_json:
        listed = {
            "processes": [asdict(one) for one in found],
            "refused": {kind: _items(refused, kind) for kind in ("spans", "logs")},
        }
        click.echo(json.dumps(listed, indent=2))
        return
    for one in found:
        click.echo(_line(one))
    if refused:
        spans, logs = _items(refused, "spans"), _items(refused, "logs")
        click.echo(f"refused: {spans} spans, {logs} log records, in {root / 'refused'}")
    if not found and not refused:
        click.echo(f"nothing waits in {root}", err=True)


def _waiting(path: Path) -> _Waiting:
    files = files_of(path)
    lock = try_lock(path)
    if lock is not None:
        lock.release()
    losses = load_losses(path)
    times = [file.path.stat().st_mtime for file in files if file.path.exists()]
    return _Waiting(
        process=path.name,
        is_living=lock is None,
        spans=_items(files, "spans"),
        logs=_items(files, "logs"),
        payloads=_items(files, "payloads"),
        open_spans=sum(file.items for file in files if file.kind is SpoolKind.OPENS),
        bytes=sum(file.size_bytes for file in files),
        oldest_s=max(round(time.time() - min(times)), 0) if times else None,
        lost=sum(loss.items for loss in losses.unreported()) if losses else 0,
    )


def _items(files: Sequence[SpoolFile], signal: str) -> int:
    return sum(file.lost_items for file in files if file.kind.signal == signal)


def _line(one: _Waiting) -> str:
    state = "living" if one.is_living else "gone"
    age = "" if one.oldest_s is None else f", oldest {one.oldest_s} s ago"
    lost = f", {one.lost} lost" if one.lost else ""
    return (
        f"{one.process}  {state}  {one.spans} spans, {one.logs} log records, "
        f"{one.payloads} payloads, {one.open_spans} open spans, {one.bytes} bytes{age}{lost}"
    )


@spool.command()
@_data_option
@click.option("--endpoint", metavar="URL", help="Where to send, instead of where the settings say.")
@click.option("--protocol", metavar="NAME", help="http/protobuf or grpc.")
@click.option("--refused", is_flag=True, help="Send again what the collector refused, too.")
def flush(data: str | None, endpoint: str | None, protocol: str | None, refused: bool) -> None:
    """Send what processes that are gone have left. Example: hansard spool flush

    Exits 1 while something is left that could not be sent.
    """
    settings = _settings(data=data, endpoint=endpoint, protocol=protocol)
    from opentelemetry.sdk.resources import Resource

    root = settings.data / FOLDER
    before = _left(root)
    courier = Courier(settings, Resource.create())
    try:
        response = _send(root, courier, with_refused=refused)
    finally:
        courier.close()
    left = _left(root)
    click.echo(f"{max(before - left, 0)} sent or counted, {left} left", err=True)
    if response.outcome is not ExportOutcome.ACCEPTED:
        reason = printable(f"nothing can be sent to {settings.endpoint}: {response.reason}")
        raise click.ClickException(reason)


def _send(root: Path, courier: Courier, *, with_refused: bool) -> ExportResponse:
    orphans = OrphanedSpools(root)
    try:
        response = orphans.all(courier)
    finally:
        orphans.leave()
    if with_refused and response.outcome is ExportOutcome.ACCEPTED:
        response = _send_refused(root, courier)
    return response


def _send_refused(root: Path, courier: Courier) -> ExportResponse:
    """Send what was refused once more; what is refused again stays where it is."""
    for file in refused_files(root):
        try:
            response = courier.deliver(file.kind, items_of(file)).response
        except (HansardError, ValueError) as error:
            click.echo(printable(f"{file.path}: {error}"), err=True)
            continue
        if response.outcome is ExportOutcome.ACCEPTED:
            remove(file)
        elif response.outcome is not ExportOutcome.REFUSED:
            return response
    return ACCEPTED


def _left(root: Path) -> int:
    """Return how many spans, log records and payloads of processes that are gone wait."""
    found = [_waiting(path) for path in process_folders(root)]
    waiting = sum(one.spans + one.logs + one.payloads for one in found if not one.is_living)
    return waiting + sum(file.items for file in refused_files(root))


@spool.command()
@_data_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def drop(data: str | None, yes: bool) -> None:
    """Remove what processes that are gone have left. Example: hansard spool drop --yes

    The collector gets its count, with the next program that starts.
    """
    root = _settings(data=data).data / FOLDER
    if not yes:
        click.confirm(f"Remove {_left(root)} spans, log records and payloads for ever?", abort=True)
    count = 0
    for file in refused_files(root):  # lost, and counted, when they were refused
        count += file.items
        remove(file)
    for folder in abandoned(root):
        losses = load_losses(folder.path) or Losses(sender_of(folder))
        for file in folder.files():
            count += file.lost_items
            losses.add(file.kind.signal, DropReason.DROPPED_BY_HAND, file.lost_items)
            remove(file)
        losses.save(folder.path)
        folder.leave()
    click.echo(f"{count} spans, log records and payloads removed", err=True)
