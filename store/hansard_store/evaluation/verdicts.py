"""Verdicts on claims: rows, lists, and what deletions and purges take.

Functions that write run inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any, Final, Literal, get_args

import apsw
import orjson

from hansard_store.database.cursors import Page, decode_cursor, encode_cursor
from hansard_store.database.stored_json import json_text
from hansard_store.errors import InvalidQueryError
from hansard_store.memory.rows import ids_of

Source = Literal["step", "message", "memory"]
Verdict = Literal["confirmed", "contradicted", "claimed", "unknown"]
ActionStatus = Literal["acted", "verified", "contradicted", "unknown"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
# What is known of what an agent did: that it says so, that it worked, or that it did not.
_STATUS: Final[Mapping[Verdict, ActionStatus]] = {
    "claimed": "acted",
    "confirmed": "verified",
    "contradicted": "contradicted",
    "unknown": "unknown",
}
_ABOVE_ALL: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """A verdict as it is written; ids are as stored, times Unix nanoseconds."""

    key: bytes
    source: Source
    trace_id: bytes | None
    span_id: bytes | None
    memory: int | None
    message: bytes | None
    said: str
    start: int
    subject: str
    is_tool: bool
    polarity: str
    qualifier: str
    language: str
    verdict: Verdict
    why: str
    tool: str
    evidence: tuple[str, ...]
    executions: int
    failures: int
    claimed_ns: int
    decided_ns: int | None
    recovered_ns: int | None
    correction: int | None = None
    count: int = 1
    first_seen_ns: int = 0
    last_seen_ns: int = 0
    id: int = 0

    @property
    def run_id(self) -> str | None:
        return None if self.trace_id is None else self.trace_id.hex()

    @property
    def step_id(self) -> str | None:
        """The step that made the claim, or wrote it into memory."""
        if self.trace_id is None or self.span_id is None:
            return None
        return f"{self.trace_id.hex()}-{self.span_id.hex()}"

    @property
    def action_status(self) -> ActionStatus | None:
        """Whether something was only done, or done and worked; None of a claim of failure."""
        return None if self.polarity == "failure" else _STATUS[self.verdict]


_NAMES: Final = tuple(one.name for one in fields(VerdictRow))[:-1]  # but the number
_CALLED: Final = {"said": "sentence", "why": "reason"}  # columns of other names
_COLUMNS: Final = ", ".join(_CALLED.get(name, name) for name in _NAMES)
_SELECT: Final = f"SELECT id, {_COLUMNS} FROM claim_verdict"
_PUT: Final = f"""
INSERT INTO claim_verdict ({_COLUMNS}) VALUES ({", ".join("?" * 26)})
ON CONFLICT (key) DO UPDATE SET verdict = excluded.verdict, reason = excluded.reason,
  tool = excluded.tool, evidence = excluded.evidence, executions = excluded.executions,
  failures = excluded.failures, decided_ns = excluded.decided_ns,
  recovered_ns = excluded.recovered_ns,
  correction = coalesce(excluded.correction, correction), count = count + 1,
  last_seen_ns = excluded.last_seen_ns
"""
_COUNT_AGAIN: Final = """
UPDATE claim_verdict SET count = count + 1, last_seen_ns = :now
WHERE verdict = 'contradicted' AND claimed_ns >= :since AND last_seen_ns < :now
  AND id IN (SELECT id FROM claim_verdict INDEXED BY claim_verdict_verdict
    WHERE verdict = 'contradicted')
"""
_BY_KEYS: Final = f"{_SELECT} WHERE key IN (SELECT unhex(value) FROM json_each(?))"
_OF_RUN: Final = f"""
{_SELECT} INDEXED BY claim_verdict_run WHERE trace_id = :trace ORDER BY claimed_ns, id LIMIT :limit
"""
_MESSAGES_OF_RUN: Final = """
SELECT DISTINCT message FROM claim_verdict INDEXED BY claim_verdict_run
WHERE trace_id = :trace AND source = 'message'
"""
_STANDING: Final = f"""
{_SELECT} INDEXED BY claim_verdict_time
WHERE claimed_ns >= :since AND source = 'memory' AND sentence <> '' AND EXISTS (
  SELECT 1 FROM memory WHERE memory.id = claim_verdict.memory AND memory.state = 'current')
ORDER BY claimed_ns, id LIMIT :limit
"""
_LIST: Final = f"{_SELECT} WHERE id < :before AND {{wanted}} ORDER BY id DESC LIMIT :limit"
_FILTERS: Final[Mapping[str, str]] = {
    "run": "trace_id = :run",
    "verdict": "verdict = :verdict",
    "tool": "id IN (SELECT id FROM claim_verdict WHERE subject = :tool "
    "UNION SELECT id FROM claim_verdict WHERE tool = :tool AND tool <> '')",
    "memory": "memory = :memory",
    "source": "source = :source",
}
_COUNTS: Final = """
SELECT verdict, count(*) FROM claim_verdict INDEXED BY claim_verdict_time
WHERE claimed_ns >= :since GROUP BY verdict
"""
_UNVERIFIED: Final = """
SELECT subject, count(*) FROM claim_verdict INDEXED BY claim_verdict_time
WHERE claimed_ns >= :since AND verdict = 'claimed' GROUP BY subject ORDER BY 2 DESC, 1 LIMIT :limit
"""
_GONE_OF_RUN: Final = """
DELETE FROM claim_verdict WHERE source <> 'memory' AND trace_id = :trace AND key NOT IN (
  SELECT unhex(value) FROM json_each(:keys))
"""
_RELEASE: Final = """
DELETE FROM claim_verdict WHERE id IN (
  SELECT id FROM claim_verdict INDEXED BY claim_verdict_run
  WHERE trace_id = :trace AND source <> 'memory' LIMIT :most)
"""
_FORGET_STEP: Final = """
UPDATE claim_verdict SET trace_id = NULL, span_id = NULL WHERE trace_id = ? AND source = 'memory'
"""
_FORGET_RUN: Final = "DELETE FROM evaluated_run WHERE trace_id = ?"
# All versions of each: an older one says the same.
_CORRECTIONS: Final = """
SELECT memory.id FROM memory INDEXED BY memory_line
WHERE memory.memory_type = 'correction' AND memory.line IN (
  SELECT one.line FROM claim_verdict INDEXED BY claim_verdict_memory
  JOIN memory AS one ON one.id = claim_verdict.correction WHERE claim_verdict.memory = ?)
"""
_FORGET_WORDS: Final = "UPDATE claim_verdict SET sentence = '' WHERE memory = ?"


@dataclass(frozen=True, slots=True)
class VerdictFilter:
    """Conditions on verdicts, all of which must hold; None leaves one out."""

    run: bytes | None = None
    verdict: Verdict | None = None
    tool: str | None = None  # the subject, or the tool of the step that decided
    memory: int | None = None
    source: Source | None = None


def list_verdicts(
    connection: apsw.Connection,
    filters: VerdictFilter,
    *,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[VerdictRow]:
    """Return verdicts, the first seen last first."""
    if filters.verdict is not None and filters.verdict not in VERDICTS:
        message = f"verdict is {filters.verdict!r}; it is one of {', '.join(VERDICTS)}"
        raise InvalidQueryError("verdict", message)
    before = _ABOVE_ALL if cursor is None else decode_cursor("evaluations", cursor, count=1)[0]
    conditions = {name: value for name in _FILTERS if (value := getattr(filters, name)) is not None}
    clauses = " AND ".join(("1", *(_FILTERS[name] for name in conditions)))
    parameters = {**conditions, "before": before, "limit": limit + 1}
    rows: list[Any] = connection.execute(_LIST.format(wanted=clauses), parameters).fetchall()
    items = tuple(_row(one) for one in rows[:limit])
    is_more = len(rows) > limit
    return Page(items, encode_cursor("evaluations", items[-1].id) if is_more else None)


def verdicts_of_run(
    connection: apsw.Connection, trace_id: bytes, *, limit: int = 200
) -> list[VerdictRow]:
    """Return the verdicts on the claims of a run, in their order."""
    return [_row(one) for one in connection.execute(_OF_RUN, {"trace": trace_id, "limit": limit})]


def messages_of_run(connection: apsw.Connection, trace_id: bytes) -> list[bytes]:
    """Return the ids of messages of transcripts whose claims were judged in a run."""
    found = connection.execute(_MESSAGES_OF_RUN, {"trace": trace_id})
    return [bytes(message) for (message,) in found]


def standing_verdicts(
    connection: apsw.Connection, *, since_ns: int, limit: int
) -> list[VerdictRow]:
    """Return the verdicts on current memory that was written since a time."""
    parameters = {"since": since_ns, "limit": limit}
    return [_row(one) for one in connection.execute(_STANDING, parameters)]


def known_verdicts(connection: apsw.Connection, keys: Iterable[bytes]) -> dict[bytes, VerdictRow]:
    """Return those of some verdicts that are stored, by their keys."""
    keys_json = json_text([key.hex() for key in keys])
    return {one.key: one for one in map(_row, connection.execute(_BY_KEYS, (keys_json,)))}


def count_verdicts(connection: apsw.Connection, *, since_ns: int) -> dict[Verdict, int]:
    """Return how many claims of a window have which verdict."""
    found: Any = connection.execute(_COUNTS, {"since": since_ns})
    return {**dict.fromkeys(VERDICTS, 0), **dict(found)}


def unverified_subjects(
    connection: apsw.Connection, *, since_ns: int, limit: int = 50
) -> list[tuple[str, int]]:
    """Return the tools and topics of which something is claimed without evidence, how often."""
    return [*connection.execute(_UNVERIFIED, {"since": since_ns, "limit": limit})]


def memory_ids(connection: apsw.Connection, rows: Sequence[VerdictRow]) -> dict[int, str]:
    """Return the ids of the memories and corrections that some verdicts name, by number."""
    numbers = {n for one in rows for n in (one.memory, one.correction) if n is not None}
    return ids_of(connection, sorted(numbers))


# ---- written


def put_verdict(connection: apsw.Connection, row: VerdictRow, *, now_ns: int) -> None:
    """Add a verdict, or count one that is known and set what changed."""
    values = {name: getattr(row, name) for name in _NAMES}
    values |= {"is_tool": int(row.is_tool), "evidence": json_text(list(row.evidence))}
    values |= {"count": 1, "first_seen_ns": now_ns, "last_seen_ns": now_ns}
    connection.execute(_PUT, tuple(values.values()))


def count_again(connection: apsw.Connection, *, since_ns: int, now_ns: int) -> int:
    """Count the contradictions of a window that were not seen since; return how many."""
    connection.execute(_COUNT_AGAIN, {"since": since_ns, "now": now_ns})
    return connection.changes()


def drop_others(connection: apsw.Connection, trace_id: bytes, keys: Iterable[bytes]) -> None:
    """Remove the verdicts on what a run does not say any more: it was received again."""
    keys_json = json_text([key.hex() for key in keys])
    connection.execute(_GONE_OF_RUN, {"trace": trace_id, "keys": keys_json})


def release_verdicts(connection: apsw.Connection, trace_id: bytes, *, most: int) -> int:
    """Remove some verdicts of a run that is deleted; return how many."""
    connection.execute(_FORGET_RUN, (trace_id,))
    connection.execute(_FORGET_STEP, (trace_id,))
    connection.execute(_RELEASE, {"trace": trace_id, "most": most})
    return connection.changes()


def forget_words(connection: apsw.Connection, memory: int) -> list[int]:
    """Remove the claims of a purged record; return the numbers of its corrections."""
    found = [number for (number,) in connection.execute(_CORRECTIONS, (memory,))]
    connection.execute(_FORGET_WORDS, (memory,))
    return found


def _row(row: Any) -> VerdictRow:
    values = dict(zip(("id", *_NAMES), row, strict=True))
    evidence = tuple(orjson.loads(values["evidence"]))
    return VerdictRow(**{**values, "is_tool": bool(values["is_tool"]), "evidence": evidence})


# How far evaluation is: what it judged already, so that a cycle costs what is new.

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
    trace_ids = json_text([one.hex() for one in traces])
    return {
        bytes(trace): bytes(digest) for trace, digest in connection.execute(_DIGESTS, (trace_ids,))
    }


def put_digests(connection: apsw.Connection, digests: dict[bytes, bytes]) -> None:
    """Record what runs were judged by, in a transaction."""
    connection.executemany(_PUT_DIGEST, list(digests.items()))


def forget_digests(connection: apsw.Connection) -> None:
    """Let every run be judged again, in a transaction: the rules have changed."""
    connection.execute(_FORGET)
