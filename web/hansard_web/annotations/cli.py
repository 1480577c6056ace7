"""`hansard annotations`: notes, scores and tags on runs and steps, and the data set of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hansard_compiler.calls import Json
from hansard_compiler.models.annotations import KINDS
from hansard_store.annotations.queries import annotation_json, list_annotations
from hansard_store.annotations.rows import Annotation
from hansard_store.annotations.service import AnnotationService
from hansard_web.annotations.dataset import DatasetWanted, open_dataset
from hansard_web.annotations.labels import score_words, source_words
from hansard_web.annotations.panel import find_target, read_target
from hansard_web.api.queries import limit_of, read_word
from hansard_web.cli.base import (
    CommandGroup,
    by_option,
    json_option,
    page_options,
    print_answer,
    print_page,
    setting_options,
    write_bytes,
)
from hansard_web.cli.store import lent_readers, opened_service, reading
from hansard_web.cli.tables import Column, print_lines, print_records
from hansard_web.ui import format as fmt

_SOURCES = click.Choice(["human", "code", "llm"])


@click.group(cls=CommandGroup, name="annotations")
def annotations_() -> None:
    """Annotations: list, note, score, tag, withdraw; export what is marked as a data set."""


@annotations_.command("list")
@click.argument("target", required=False)
@setting_options("data")
@click.option("--kind", type=click.Choice(KINDS), help="Only these.")
@click.option("--name", help="Name of a score, or a tag.")
@click.option("--author", help="Who says so.")
@click.option("--all", "with_ended", is_flag=True, help="Those replaced and withdrawn, too.")
@page_options
def list_(
    *,
    target: str | None,
    data: str | None,
    kind: str | None,
    name: str | None,
    author: str | None,
    with_ended: bool,
    limit: str,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List annotations, the newest first: of all, of a run and its steps, or of a step.

    Example: hansard annotations list 4bf92f35 --kind score
    """
    with reading(data) as connection:
        ids = {"run": None, "step": None} | {_field(target or ""): target}
        page = list_annotations(
            connection,
            target=read_target(connection, **ids),
            with_steps=ids["step"] is None,
            kind=read_word("kind", kind, KINDS),
            name=name,
            author=author,
            with_ended=with_ended,
            limit=limit_of(limit),
            cursor=cursor,
        )
    print_page(page, annotation_json, _print, as_json=as_json)


def _writing(function: Any) -> Any:
    """Add what every command that writes takes."""
    function = setting_options("data", "retention")(json_option(by_option()(function)))
    return click.argument("target")(function)


@annotations_.command()
@_writing
@click.argument("text")
@click.option("--expected", help="What the output should have been.")
def note(*, text: str, expected: str | None, **options: Any) -> None:
    """Write a note on TARGET: a run, or a step.

    Example: hansard annotations note 4bf92f35 "asked twice for the same file"
    """
    _write({"kind": "note", "text": text, "expected": expected}, **options)


@annotations_.command()
@_writing
@click.argument("name")
@click.argument("value")
@click.option("--label", help="A word for it: pass, fail, …")
@click.option("--why", help="An explanation.")
@click.option("--expected", help="What the output should have been.")
@click.option("--source", type=_SOURCES, default="human", show_default=True, help="Who judged.")
def score(
    *,
    name: str,
    value: str,
    label: str | None,
    why: str | None,
    expected: str | None,
    source: str,
    **options: Any,
) -> None:
    """Give TARGET a score: VALUE is a number, or a word such as pass.

    Your newer score of a name replaces the older, which stays in the history.

    Example: hansard annotations score 4bf92f35 correctness 0.9 --why "missed one case"
    """
    number = _number(value)
    score_fields = {"value": number, "label": label if number is not None else label or value}
    fields = {"kind": "score", "name": name, "score": score_fields, "explanation": why}
    _write({**fields, "expected": expected, "source": source}, **options)


@annotations_.command()
@_writing
@click.argument("tag")
def tag(*, tag: str, **options: Any) -> None:
    """Put a tag on TARGET; `withdraw` takes it off again.

    Example: hansard annotations tag 4bf92f35 needs-review
    """
    _write({"kind": "tag", "tag": tag}, **options)


@annotations_.command()
@click.argument("annotation_id")
@click.option("--reason", help="Why.")
@by_option()
@setting_options("data", "retention")
@json_option
def withdraw(
    *,
    annotation_id: str,
    reason: str | None,
    by: str,
    data: str | None,
    retention: str | None,
    as_json: bool,
) -> None:
    """Take an annotation back; it stays in the history.

    Example: hansard annotations withdraw 1f8b2c3d --reason "of another run"
    """
    with opened_service(AnnotationService, data, retention) as service:
        fields = {"reason": reason, "by": by}
        made = service.withdraw_json(annotation_id, fields)
    body = {"annotation": annotation_json(made)}
    print_answer(body, lambda _: click.echo(f"withdrawn {made.annotation_id}"), as_json=as_json)


@annotations_.command()
@click.option("--tag", "tags", multiple=True, help="With this tag; several times: with each.")
@click.option(
    "--score", "scores", multiple=True, metavar="NAME[:LABEL|>=N]", help="With this score."
)
@click.option("--run", help="Only this run and its steps.")
@setting_options("data")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file; else stdout.")
def export(
    *,
    tags: tuple[str, ...],
    scores: tuple[str, ...],
    run: str | None,
    data: str | None,
    output: Path | None,
) -> None:
    """Write marked runs and steps as a data set, a JSON line each.

    Input messages, tools, output, expected output, tags, scores and notes.

    Example: hansard annotations export --tag golden --score "correctness>=0.8" -o set.jsonl
    """
    selection = DatasetWanted.read(tags, scores, run)
    with lent_readers(data) as readers:
        write_bytes(open_dataset(readers, selection), output)


def _write(
    fields: Json, *, target: str, by: str, data: str | None, retention: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    with reading(data) as connection:
        field, whole_id = find_target(connection, **{_field(target): target})
    given = {name: value for name, value in fields.items() if value is not None}
    with opened_service(AnnotationService, data, retention) as service:
        made = service.write_json({**given, field: whole_id}, by=by)
    line = f"{_what(made)} on {field[:-3]} {whole_id}  {made.annotation_id}"
    body = {"annotation": annotation_json(made)}
    print_answer(body, lambda _: print_lines([line]), as_json=as_json)


def _field(target: str) -> str:
    """Return which of both it names: a step has a dash in its id."""
    return "step" if "-" in target else "run"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _what(one: Annotation) -> str:
    row = one.row
    if row.kind == "score":
        return f"{row.name} {score_words(row.value, row.label)}"
    return f"tag {row.name}" if row.kind == "tag" else "note"


def _print(items: Sequence[Annotation]) -> None:
    print_records(
        items,
        {
            Column("ANNOTATION"): lambda one: (one.annotation_id or "sent")[:12],
            Column("ON"): lambda one: (
                one.step_id[:8] + "…" + one.step_id[32:] if one.step_id else one.run_id[:12]
            ),
            Column("WHAT"): _what,
            Column("TEXT", may_cut=True): lambda one: fmt.shorten(
                " ".join((one.row.text or "").split()), 120
            ),
            Column("BY"): lambda one: one.row.author or source_words(one.row.source),
            Column("WHEN (UTC)"): lambda one: fmt.day_time(one.row.created_ns),
            Column("STATE"): lambda one: "" if one.state == "current" else one.state,
        },
    )
