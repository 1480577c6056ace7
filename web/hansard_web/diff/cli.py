"""`hansard diff`: any two steps, or any two runs, compared."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import click
from rich.text import Text

from hansard_compiler.diff import CompileDiff, Delta, JsonDiff, TextOp
from hansard_compiler.errors import HansardError
from hansard_store.steps.queries import get_tree
from hansard_web.cli.base import (
    Command,
    Misused,
    json_option,
    print_json,
    setting_options,
    write_bytes,
)
from hansard_web.cli.store import reading
from hansard_web.cli.tables import Column, plain, print_lines, print_table
from hansard_web.compile_view.labels import ItemNames
from hansard_web.diff.bodies import run_diff_body, step_diff_body
from hansard_web.diff.labels import (
    STATES,
    decision_text,
    parted_text,
    say,
    signed,
    what_text,
)
from hansard_web.diff.lookup import are_steps
from hansard_web.diff.runs import RunDiff, compare_focus, compare_runs
from hansard_web.diff.steps import StepDiff, compare_steps
from hansard_web.html_export import saved_diff
from hansard_web.ui import format as fmt

_MOST_STEPS = 400  # of a table; --json has all
_MOST_ITEMS = 100
_LONGEST_TEXT = 600  # characters of one stretch that did not change
_MARKS = {"same": "=", "changed": "~", "only_left": "A", "only_right": "B"}
_STYLES = {"only_left": "yellow", "only_right": "blue", "changed": "", "same": "dim"}


class _Unfound(Misused):
    """What cannot be compared exits 2: 1 means that something differs."""


@click.command(cls=Command)
@click.argument("left")
@click.argument("right")
@setting_options("data")
@click.option("--all", "with_same", is_flag=True, help="Show what is the same as well.")
@click.option("--html", type=click.Path(path_type=Path), help="Save it as one HTML file.")
@json_option
def diff(
    *, left: str, right: str, data: str | None, with_same: bool, html: Path | None, as_json: bool
) -> None:
    """Compare two runs, or two steps: what differs, and why.

    LEFT and RIGHT are ids or unique beginnings of them; a step is <run>-<span>. Exits 0 when
    nothing differs but times, 1 when something does, 2 when they cannot be compared.

    Example: hansard diff 4bf92f35 7d1f0c3a
    """
    try:
        with reading(data) as connection:
            found = _compared(connection, left, right, as_json=as_json, with_same=with_same)
            if html is not None:
                file = saved_diff(connection, left, right, trees=get_tree, now_ns=time.time_ns())
                write_bytes([file.body], html)
    except HansardError as error:
        raise _Unfound(str(error)) from None
    except apsw.Error as error:
        raise _Unfound(f"the store cannot be used: {error}") from None
    if found:
        raise SystemExit(1)


def _compared(
    connection: apsw.Connection, left: str, right: str, *, as_json: bool, with_same: bool
) -> bool:
    """Print the comparison; return whether something differs."""
    now_ns = time.time_ns()
    if are_steps(left, right):
        steps = compare_steps(connection, left, right, now_ns=now_ns)
        if as_json:
            print_json(step_diff_body(steps))
        else:
            _print_steps(steps, with_same=with_same)
        return not steps.is_empty
    runs = compare_runs(connection, left, right, trees=get_tree, now_ns=now_ns)
    focus = compare_focus(connection, runs.focus, now_ns=now_ns)
    if as_json:
        print_json(run_diff_body(runs, runs.steps, next_cursor=None, focus=focus))
    else:
        _print_runs(runs, focus, with_same=with_same)
    return not runs.is_empty


# ---- for people


def _print_runs(diff: RunDiff, focus: StepDiff | None, *, with_same: bool) -> None:
    _print_sides(
        (f"A  {diff.left.run_id[:12]}", diff.left.name, diff.left.started_ns),
        (f"B  {diff.right.run_id[:12]}", diff.right.name, diff.right.started_ns),
    )
    _print_figures(diff.figures)
    counts = ", ".join(f"{STATES[name]} {count}" for name, count in diff.counts.items() if count)
    print_lines(["", f"{parted_text(diff)}", f"steps: {counts or 'none'}", *diff.notes])
    shown = [one for one in diff.steps if with_same or one.state != "same"]
    if shown:
        print_lines([""])
        print_table(
            (
                Column(""),
                Column("STEP", may_cut=True),
                Column("A", is_figure=True),
                Column("B", is_figure=True),
                Column("WHAT DIFFERS", may_cut=True),
            ),
            (_step_row(one) for one in shown[:_MOST_STEPS]),
        )
    if len(shown) > _MOST_STEPS:
        print_lines([f"and {len(shown) - _MOST_STEPS:,} more: --json has all"])
    if focus is not None:
        print_lines(["", f"{focus.right.step.name}, the first that differs on both sides"])
        _print_parts(focus, with_same=with_same)


def _step_row(one: Any) -> Sequence[str | Text]:
    style = _STYLES[one.state]
    took = [
        "" if row is None or row.step.duration_ns is None else fmt.duration(row.step.duration_ns)
        for row in (one.left, one.right)
    ]
    name = plain(f"{'  ' * one.row.depth}{one.row.step.name}")
    name.stylize(style)
    return (Text(_MARKS[one.state], style=style), name, *took, what_text(one.what))


def _print_steps(diff: StepDiff, *, with_same: bool) -> None:
    sides = ((letter, side) for letter, side in (("A", diff.left), ("B", diff.right)))
    _print_sides(
        *(
            (f"{letter}  {side.step.run_id[:12]}-{side.step.span_id}", side.step.name,
             side.step.sort_ns)
            for letter, side in sides
        )
    )  # fmt: skip
    _print_figures(diff.figures)
    differing = what_text(diff.what)
    print_lines(["", f"{'They differ in: ' + differing if differing else 'Nothing differs.'}"])
    _print_parts(diff, with_same=with_same)
    print_lines(diff.notes)


def _print_sides(*sides: tuple[str, str, int]) -> None:
    print_lines(f"{key}  {name}  {fmt.day_time(started)} UTC" for key, name, started in sides)


def _print_figures(figures: Iterable[Delta]) -> None:
    texts = [say(one) for one in figures]
    print_lines([""])
    print_table(
        (Column("FIGURE"), Column("A", is_figure=True), Column("B", is_figure=True), Column("")),
        ((one.label, one.left, one.right, _verdict(one.say, one)) for one in texts),
    )


def _verdict(text: str, one: Any) -> Text:
    return Text(text, style="green" if one.is_better else "red" if one.is_worse else "")


def _print_parts(diff: StepDiff, *, with_same: bool) -> None:
    if diff.context is not None and not diff.context.is_empty:
        _print_context(diff.context, diff.item_names, with_same=with_same)
    changed = [pair for pair in diff.messages if pair.state not in ("same", "retold")]
    if changed:
        print_lines(["", f"messages: {fmt.plural(len(changed), 'difference')}"])
    for pair in changed:
        position = pair.right if pair.right is not None else pair.left
        side = diff.right if pair.right is not None else diff.left
        message = side.messages[position or 0]
        state = STATES.get(pair.state, pair.state)
        print_lines([f"  {(position or 0) + 1} {message.role}: {state}"])
        _print_words(diff.message_text(pair) or ())
    for label, value in (("input", diff.input), ("output", diff.output)):
        if not value.is_empty:
            print_lines(["", f"{label}"])
            _print_words(value.text)
            print_lines(_path_lines(value.json))
    for label, paths in (("tools", diff.tools), ("parameters", diff.parameters)):
        if paths.changes:
            print_lines(["", f"{label}"])
            print_lines(_path_lines(paths))
    if diff.request is not None and not diff.request.is_equal:
        at = diff.request.first_difference
        where = "" if at is None else f", the first at byte {at:,}"
        print_lines(["", f"request: the bytes differ{where}"])


def _print_context(diff: CompileDiff, names: ItemNames, *, with_same: bool) -> None:
    items = [one for one in diff.items if with_same or one.change != "same"]
    print_lines(["", "context"])
    print_table(
        (
            Column("ITEM", may_cut=True),
            Column("A"),
            Column("B"),
            Column("TOKENS", is_figure=True),
            Column("BECAUSE", may_cut=True),
        ),
        (
            (
                names.of(one),
                decision_text(one.left),
                decision_text(one.right),
                signed(one.tokens_delta),
                "" if one.because is None else _because(one.because),
            )
            for one in items[:_MOST_ITEMS]
        ),
    )
    amounts = [one for one in (*diff.budget, *diff.by_class, *diff.by_section) if one.delta]
    print_lines(f"  {one.name}: {one.left:,} → {one.right:,} tokens" for one in amounts)
    print_lines(f"  rule {one.rule_id}: {one.change}" for one in diff.policy)


def _because(because: Any) -> str:
    proof = "" if because.basis == "verified" else " (evidence, not tried)"
    return f"{because.kind}: {because.detail}{proof}"


def _print_words(ops: Sequence[TextOp]) -> None:
    if not ops:
        return
    text = Text("    ")
    for op in ops:
        shown = op.text if op.kind != "same" else _shortened(op.text)
        piece = plain({"del": f"[-{shown}-]", "ins": f"{{+{shown}+}}", "same": shown}[op.kind])
        piece.stylize({"del": "yellow strike", "ins": "blue", "same": "dim"}[op.kind])
        text.append_text(piece)
    print_lines([text])


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_TEXT:
        return text
    half = _LONGEST_TEXT // 2
    return f"{text[:half]} … {text[-half:]}"


def _path_lines(diff: JsonDiff) -> Iterator[str]:
    for one in diff.changes[:_MOST_ITEMS]:
        left = "absent" if one.state == "only_right" else fmt.shorten(repr(one.left), 80)
        right = "absent" if one.state == "only_left" else fmt.shorten(repr(one.right), 80)
        yield f"    {one.path}: {left} → {right}"
    if len(diff.changes) > _MOST_ITEMS or diff.is_cut:
        yield "    and more: --json has them"
