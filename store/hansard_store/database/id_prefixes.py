"""Ids found by their beginning or end: 8 of their 32 hex digits do, where one alone has them so."""

from __future__ import annotations

from typing import Any, Final

import apsw

from hansard_compiler.errors import MIN_PREFIX_DIGITS, AmbiguousIdError, NotFoundError

_ID_DIGITS: Final = 32
_SHOWN_MATCHES: Final = 5  # of an ambiguous prefix


def find_row(
    connection: apsw.Connection, sql: str, kind: str, prefix: str, *, ending: str | None = None
) -> Any:
    """Return the one row whose id begins so, or ends so where there is SQL for that.

    `sql` selects an id first, between :low and :high in their order, at most :limit; `ending` those
    whose last eight hex digits, as capitals, are :tail, and all of them LIKE :ending. Raises
    NotFoundError, also for what is no id at all, and AmbiguousIdError.
    """
    digits = prefix.lower()
    is_hex = all(digit in "0123456789abcdef" for digit in digits)
    if not is_hex or not MIN_PREFIX_DIGITS <= len(digits) <= _ID_DIGITS:
        raise NotFoundError(kind, prefix)
    bounds = {
        "low": bytes.fromhex(digits.ljust(_ID_DIGITS, "0")),
        "high": bytes.fromhex(digits.ljust(_ID_DIGITS, "f")),
        "limit": _SHOWN_MATCHES,
    }
    found: list[Any] = connection.execute(sql, bounds).fetchall()
    if ending is not None and len(digits) < _ID_DIGITS:
        ends = {
            "tail": digits[-MIN_PREFIX_DIGITS:].upper(),
            "ending": f"%{digits}",
            "limit": _SHOWN_MATCHES,
        }
        others: list[Any] = connection.execute(ending, ends).fetchall()
        found = list(dict.fromkeys([*found, *others]))[:_SHOWN_MATCHES]
    if not found:
        raise NotFoundError(kind, prefix)
    if len(found) > 1:
        raise AmbiguousIdError(kind, prefix, [row[0].hex() for row in found])
    return found[0]


def find_key(connection: apsw.Connection, noun: str, prefix: str) -> bytes:
    """Return the id of the one row of a noun's table that begins, or ends, so.

    `noun` names the table, and the column `<noun>_id`. Raises as `find_row`.
    """
    column = f"{noun}_id"
    select = f"SELECT {column} FROM {noun} WHERE"
    begins = f"{select} {column} BETWEEN :low AND :high ORDER BY {column} LIMIT :limit"
    ends = f"{select} substr(hex({column}), -8) = :tail AND hex({column}) LIKE :ending LIMIT :limit"
    return bytes(find_row(connection, begins, noun, prefix, ending=ends)[0])
