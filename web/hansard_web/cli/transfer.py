"""Telemetry from files and into them: import, export."""

from __future__ import annotations

import dataclasses
from contextlib import closing
from pathlib import Path

import click

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.transfer import Imported, export_store, import_files
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.annotations.service import AnnotationService
from hansard_store.database.data_folder import DataFolder
from hansard_web.app.config import Config
from hansard_web.cli.base import (
    Command,
    Failed,
    json_option,
    print_json,
    read_config,
    setting_options,
    write_bytes,
)
from hansard_web.cli.store import find_store, open_store, reading
from hansard_web.cli.tables import print_lines, progress
from hansard_web.replay.export import recipe_file
from hansard_web.ui import format as fmt


@click.command("import", cls=Command)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@setting_options("data", "config", "retention")
@json_option
def import_(*, files: tuple[Path, ...], as_json: bool, **arguments: str) -> None:
    """Read OTLP files into the store.

    JSON (a document, or one a line) and protobuf, plain or packed with gzip or zstd. What is
    imported goes the way of what is received: secrets are cut out, what is known already is left.

    Example: hansard import run.json traces.jsonl.gz
    """
    imported = _import(read_config(**arguments), files)
    if as_json:
        print_json(dataclasses.asdict(imported))
    else:
        also = fmt.plural(imported.annotations, "annotation") if imported.annotations else ""
        items = " and ".join(filter(None, (fmt.plural(imported.accepted, "item"), also)))
        click.echo(f"{items} from {fmt.plural(len(files), 'file')}")
    for problem in imported.problems:
        print_lines([fmt.printable(f"{problem.where}: {problem.message}")], err=True)
    if imported.problems:
        raise Failed(f"{fmt.plural(len(imported.problems), 'part')} could not be imported")


def _import(config: Config, files: tuple[Path, ...]) -> Imported:
    folder = DataFolder(config.data)
    folder.create()
    pipeline = Pipeline(folder, RetentionPolicy(config.retention, Redactor(folder.key())))
    pipeline.start()
    service = AnnotationService(folder, RetentionMode(config.retention), origin="import")
    with closing(service), closing(pipeline), progress() as tell:
        return import_files(
            pipeline,
            files,
            restore=service.restore,
            progress=lambda _where, done, total: tell("files", done, total),
        )


@click.command(cls=Command)
@setting_options("data")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file; else stdout.")
@click.option(
    "--recipe", metavar="STEP", help="Only what a replay of this step needs, in one file."
)
def export(*, data: str | None, output: Path | None, recipe: str | None) -> None:
    """Write all runs as OTLP.

    OTLP/JSON, an object a line: spans, log records and metrics, then annotations. Imported again,
    they make an equal store. One run alone: `hansard runs export`. With --recipe one model call
    with its payloads, which `hansard replay FILE` makes again on any machine.

    Example: hansard export -o everything.jsonl
    """
    folder = find_store(data)
    if recipe is not None:
        with reading(data) as connection:
            write_bytes([recipe_file(connection, recipe)], output)
        return
    open_store(folder).close()
    write_bytes(export_store(folder), output)
