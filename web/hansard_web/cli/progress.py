"""How far long work is, on stderr, for people only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

Tell = Callable[[str, int], None]  # what is done, and how much of it since the last time
TellOf = Callable[[str, int, int], None]  # what is done, how much by now, and of how much


@contextmanager
def progress() -> Iterator[Tell]:
    """Count what has no known end, a line a kind; nothing is shown without a terminal."""
    with _bars() as bars:
        tasks: dict[str, TaskID] = {}

        def tell(what: str, count: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=None)
            bars.advance(tasks[what], count)

        yield tell


@contextmanager
def progress_of() -> Iterator[TellOf]:
    """Show how much is done of what is known to be there."""
    with _bars() as bars:
        tasks: dict[str, TaskID] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what)
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
