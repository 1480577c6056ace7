"""Tables for people: as wide as the terminal, or as wide as they need to be for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TextIO, TypeVar

from rich.console import Console, JustifyMethod
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from hansard_web.ui.format import printable, status_word

_PIPE_WIDTH = 160
_GAP = 2  # between columns
_NARROWEST = 24  # of a column that may be cut
_BAR = "  │ "  # before what goes on from the line above
_STATUS_STYLES = {
    "error": "red",
    "open": "cyan",
    "no_end": "yellow",
    "blocked": "yellow",
    "awaiting": "yellow",
}


_Record = TypeVar("_Record")


@dataclass(frozen=True, slots=True)
class Column:
    """A heading; figures stand to the right, and the column that may be cut says so."""

    title: str
    is_figure: bool = False
    may_cut: bool = False


def console(*, err: bool = False) -> Console:
    """Return where results go. Recorded text is printed as it is: it never becomes markup."""
    width = None if _stream(err=err).isatty() else _PIPE_WIDTH
    return Console(width=width, markup=False, highlight=False, soft_wrap=False, stderr=err)


def _stream(*, err: bool) -> TextIO:
    return sys.stderr if err else sys.stdout


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str | Text]]) -> None:
    """Print rows under their headings.

    Where a terminal is too narrow for what may not be cut, its lines go on in the next one: Rich by
    itself would leave whole columns out, the ids first.
    """
    cells = [[plain(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    needed = [
        max([len(column.title), *(row[number].cell_len for row in cells)])
        for number, column in enumerate(columns)
    ]
    out = console()
    most = _most_wide(columns, needed, out.width)
    widths = [
        min(width, most) if column.may_cut else width
        for width, column in zip(needed, columns, strict=True)
    ]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, width in zip(columns, widths, strict=True):
        justify: JustifyMethod = "right" if column.is_figure else "left"
        table.add_column(
            column.title, justify=justify, no_wrap=True, overflow="ellipsis", width=width
        )
    for row in cells:
        table.add_row(*row)
    out.width = max(out.width, sum(widths) + _GAP * (len(columns) - 1))
    out.print(table)


def print_records(
    records: Iterable[_Record], cells: Mapping[Column, Callable[[_Record], str | Text]]
) -> None:
    """Print a line for each record: under every heading what is made of the record for it."""
    print_table(tuple(cells), [[cell(one) for cell in cells.values()] for one in records])


def _most_wide(columns: Sequence[Column], needed: Sequence[int], width: int) -> int:
    """Return how wide each column that may be cut can be, so that the others are whole."""
    fixed = sum(width for width, column in zip(needed, columns, strict=True) if not column.may_cut)
    left = width - fixed - _GAP * (len(columns) - 1)
    cut = sorted(width for width, column in zip(needed, columns, strict=True) if column.may_cut)
    share = left
    for number, one in enumerate(cut):  # what a short one leaves is for the long ones
        share = left // (len(cut) - number)
        if one > share:
            break
        left -= one
    return max(share, _NARROWEST)


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one a line; those without a value are left out."""
    shown = [(name, value) for name, value in facts if value]
    width = max((len(name) for name, _ in shown), default=0)
    print_lines(f"{name:<{width}}  {value}" for name, value in shown)


def print_lines(lines: Iterable[str | Text], *, err: bool = False) -> None:
    """Print recorded text, folded at the width of the terminal and never cut.

    What goes on in a further line, by a line break of its own or folded, is set off by a bar: no
    recorded text begins a line that could pass for one of the command's own.
    """
    out = console(err=err)
    for line in lines:
        first, *rest = _folded(out, line, is_terminal=_stream(err=err).isatty())
        out.print(first, soft_wrap=True)
        for one in rest:
            out.print(Text(_BAR) + one, soft_wrap=True)


def _folded(out: Console, line: str | Text, *, is_terminal: bool) -> list[Text]:
    """Return a line in pieces; for a pipe, which has no width, at its line breaks alone."""
    pieces = [line] if isinstance(line, Text) else [plain(one) for one in line.split("\n")]
    if not is_terminal:
        return pieces
    width = max(out.width - len(_BAR), _NARROWEST)
    return [part for one in pieces for part in one.wrap(out, width, overflow="fold") or [one]]


def status_text(status: str) -> Text:
    """Return a status in the words of the pages, in its colour."""
    return Text(status_word(status), style=_STATUS_STYLES.get(status, ""))


def plain(recorded: str) -> Text:
    """Return recorded text in which control characters and line breaks are spelled out.

    They could drive the terminal, or forge a line of the command's own.
    """
    return Text(printable(recorded))


# How far long work is, on stderr, for people only.


class Tell(Protocol):
    """Receives what is done, and how much: in all of a total, else since the last time."""

    def __call__(self, what: str, done: int, total: int | None = None, /) -> None: ...


@contextmanager
def progress() -> Iterator[Tell]:
    """Show how much is done, a line a kind; nothing is shown without a terminal."""
    with _bars() as bars:
        tasks: dict[str, TaskID] = {}

        def tell(what: str, done: int, total: int | None = None, /) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            if total is None:
                bars.advance(tasks[what], done)
            else:
                bars.update(tasks[what], completed=done, total=total)

        yield tell


def _bars() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description:<12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
