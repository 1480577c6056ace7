"""How far evaluation is: what it judged already, so that a cycle costs what is new."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from typing import Any, Final

import apsw
import orjson

_READ: Final = "SELECT name, value FROM setting WHERE name LIKE 'evaluated_%'"
_WRITE: Final = """
INSERT INTO setting (name, value) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
_DIGESTS: Final = """
SELECT trace_id, digest FROM evaluated_run
WHERE trace_id IN (SELECT unhex(value) FROM json_each(?))
"""
_PUT_DIGEST: Final = """
INSERT INTO evaluated_run (trace_id, digest) VALUES (?, ?)
ON CONFLICT (trace_id) DO UPDATE SET digest = excluded.digest
"""
_FORGET: Final = "DELETE FROM evaluated_run"


@dataclass(frozen=True, slots=True)
class Progress:
    """Up to where everything is judged; `since_ns` is the beginning of the longest window."""

    change: int = 0  # run.change_seq
    memory: int = 0  # memory.id
    message: int = 0  # transcript_message.rowid
    since_ns: int = (1 << 63) - 1
    rules: str = ""  # digest of phrases and configuration


def read_progress(connection: apsw.Connection) -> Progress:
    """Return how far evaluation is; of a store that was never evaluated, at the beginning."""
    found: dict[str, Any] = {
        name.removeprefix("evaluated_"): value for name, value in connection.execute(_READ)
    }
    known = {one.name: found[one.name] for one in fields(Progress) if one.name in found}
    return Progress(**known)


def write_progress(connection: apsw.Connection, progress: Progress) -> None:
    """Record how far evaluation is, in a transaction."""
    names = [f"evaluated_{one.name}" for one in fields(Progress)]
    connection.executemany(_WRITE, list(zip(names, astuple(progress), strict=True)))


def known_digests(connection: apsw.Connection, traces: list[bytes]) -> dict[bytes, bytes]:
    """Return what is known of runs that were judged."""
    told = orjson.dumps([one.hex() for one in traces]).decode()
    return {bytes(trace): bytes(digest) for trace, digest in connection.execute(_DIGESTS, (told,))}


def put_digests(connection: apsw.Connection, digests: dict[bytes, bytes]) -> None:
    """Record what runs were judged by, in a transaction."""
    connection.executemany(_PUT_DIGEST, list(digests.items()))


def forget_digests(connection: apsw.Connection) -> None:
    """Let every run be judged again, in a transaction: the rules have changed."""
    connection.execute(_FORGET)
