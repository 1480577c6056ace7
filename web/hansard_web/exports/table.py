"""A list that can be saved as a file: its columns, its filters and where its rows come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from hansard_store.approvals.service import ApprovalService
from hansard_store.database.cursors import Page
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import InvalidQueryError
from hansard_web.app.readers import Readers

_Item = TypeVar("_Item")
Row: TypeAlias = Mapping[str, Any]  # a JSON body, as the API has it
AT_ONCE: Final = 500  # rows read with one connection
LONGEST_FILTER: Final = 512


@dataclass(frozen=True, slots=True)
class Source:
    """The store that rows are read from: of a server, or of a command."""

    folder: DataFolder
    readers: Readers
    approvals: ApprovalService


@dataclass(frozen=True, slots=True)
class Table:
    """A list as the API has it. `columns` are keys of its bodies; `a.b` is `b` of `a`.

    `rows` yields the bodies in the order of the list, and raises what the list's route raises
    before the first of them. Filters are texts by the names that the route's parameters have;
    a parameter that was given several times is the lines of one text.
    """

    name: str  # in the address and in the name of the file
    columns: tuple[str, ...]
    filters: tuple[str, ...]
    rows: Callable[[Source, Mapping[str, str]], Iterator[Row]]

    def read(self, source: Source, filters: Mapping[str, str]) -> Iterator[list[Any]]:
        """Yield the cells of each row. Raises InvalidQueryError for an unknown filter."""
        for name, value in filters.items():
            if name not in self.filters:
                known = ", ".join(self.filters) or "none"
                raise InvalidQueryError(
                    name[:40], f"{name[:40]!r} is no filter of {self.name}; there are {known}"
                )
            if len(value) > LONGEST_FILTER:
                raise InvalidQueryError(name, f"{name} is over {LONGEST_FILTER} characters")
        given = {name: value for name, value in filters.items() if value}
        return self._cells(self.rows(source, given))

    def _cells(self, rows: Iterator[Row]) -> Iterator[list[Any]]:
        paths = [column.split(".") for column in self.columns]
        for row in rows:
            yield [_value(row, path) for path in paths]


def _value(row: Any, path: list[str]) -> Any:
    for name in path:
        row = row.get(name) if isinstance(row, Mapping) else None
    return row


def all_pages(read: Callable[[str | None], Page[_Item]]) -> Iterator[_Item]:
    """Yield the items of all pages of a list; `read` takes the cursor of one."""
    cursor: str | None = None
    while True:
        page = read(cursor)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return
