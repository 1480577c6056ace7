"""Views of the run list that people saved by name: filters, order and columns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

import apsw

from hansard_compiler.errors import NotFoundError
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.bodies import Body, Description, body_of
from hansard_store.content.retention import Retention
from hansard_store.database.connections import OwnConnections
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import InvalidQueryError
from hansard_store.times import time_text

MOST_VIEWS: Final = 200  # of one store: a menu lists them all
LONGEST_NAME: Final = 80
LONGEST_QUERY: Final = 4_000
_COLUMNS: Final = (
    "name, query, sort, columns, created_by, created_ns, updated_by, updated_ns"  # of SavedView
)
_ALL = f"SELECT {_COLUMNS} FROM saved_view ORDER BY name LIMIT {MOST_VIEWS}"
_ONE = f"SELECT {_COLUMNS} FROM saved_view WHERE name = :name"
_COUNT = "SELECT count(*) FROM saved_view"
_SAVE = """
INSERT INTO saved_view
  (name, query, sort, columns, created_by, created_ns, updated_by, updated_ns)
VALUES (:name, :query, :sort, :columns, :by, :now_ns, :by, :now_ns)
ON CONFLICT (name) DO UPDATE SET query = :query, sort = :sort, columns = :columns,
  updated_by = :by, updated_ns = :now_ns
"""
_RENAME = """
UPDATE saved_view SET name = :to, updated_by = :by, updated_ns = :now_ns WHERE name = :name
"""
_DELETE = "DELETE FROM saved_view WHERE name = :name"


@dataclass(frozen=True, slots=True)
class SavedView:
    name: str
    query: str  # filters as in an address
    sort: str  # "" for the order of arrival
    columns: str  # joined by commas; "" for the usual ones
    created_by: str
    created_ns: int
    updated_by: str
    updated_ns: int


class SavedViewBody(Body):
    """A view of the run list; `query` has the parameters of `GET /v1/runs`."""

    name: str
    query: Annotated[str, Description("filters as in an address: status=error&agent=mender")]
    sort: Annotated[str, Description("empty: the order of arrival")]
    columns: Annotated[str, Description("joined by commas; empty: the usual ones")]
    created_by: str
    created_at: str | None
    updated_by: str
    updated_at: str | None


def view_body(view: SavedView) -> SavedViewBody:
    """Return a view as the API shows it."""
    return body_of(
        SavedViewBody,
        view,
        created_at=time_text(view.created_ns),
        updated_at=time_text(view.updated_ns),
    )


def list_views(connection: apsw.Connection) -> list[SavedView]:
    """Return all views, by name."""
    return [SavedView(*row) for row in connection.execute(_ALL)]


def get_view(connection: apsw.Connection, name: str) -> SavedView:
    """Return a view by its name; raises NotFoundError."""
    row: tuple[Any, ...] | None = connection.execute(_ONE, {"name": name}).fetchone()
    if row is None:
        raise NotFoundError("view", name[:LONGEST_NAME])
    return SavedView(*row)


class SavedViews:
    """Writes views. Threads share it, each with a connection of its own."""

    def __init__(
        self,
        folder: DataFolder,
        mode: RetentionMode = RetentionMode.REDACTED_PAYLOADS,
        *,
        origin: str = "api",
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._retention = Retention.of(folder, mode)
        self._clock = clock
        self._connections = OwnConnections(folder)

    def close(self) -> None:
        """Close all connections; no thread may be using one."""
        self._connections.close()

    def save(
        self, name: str, *, query: str, sort: str = "", columns: str = "", by: str = ""
    ) -> SavedView:
        """Save a view, in place of another of this name.

        Raises InvalidQueryError for a name or a query that cannot be stored, and for too many.
        """
        name = _checked(self._retention.clean_text(name))
        for part in (query, sort, columns):
            if len(part) > LONGEST_QUERY:
                raise InvalidQueryError("query", f"a view has at most {LONGEST_QUERY:,} characters")
        values = {"name": name, "query": self._retention.clean_text(query), "sort": sort,
                  "columns": columns, "by": by, "now_ns": self._clock()}  # fmt: skip
        with self._connections.writing() as connection:
            is_new = connection.execute(_ONE, {"name": name}).fetchone() is None
            if is_new and connection.execute(_COUNT).get >= MOST_VIEWS:
                raise InvalidQueryError("name", f"a store has at most {MOST_VIEWS} views")
            connection.execute(_SAVE, values)
            return get_view(connection, name)

    def rename(self, name: str, to: str, *, by: str = "") -> SavedView:
        """Give a view another name. Raises NotFoundError, InvalidQueryError where it is taken."""
        to = _checked(self._retention.clean_text(to))
        with self._connections.writing() as connection:
            get_view(connection, name)
            if to != name and connection.execute(_ONE, {"name": to}).fetchone() is not None:
                raise InvalidQueryError("to", f"there is a view {to!r} already")
            values = {"name": name, "to": to, "by": by, "now_ns": self._clock()}
            connection.execute(_RENAME, values)
            return get_view(connection, to)

    def delete(self, name: str) -> SavedView:
        """Delete a view and return it as it was. Raises NotFoundError."""
        with self._connections.writing() as connection:
            found = get_view(connection, name)
            connection.execute(_DELETE, {"name": name})
            return found


def _checked(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise InvalidQueryError(
            "name", f"a name has 1 to {LONGEST_NAME} characters that can be seen; {name[:80]!r} has"
            f" {len(name)}"
        )  # fmt: skip
    return name
