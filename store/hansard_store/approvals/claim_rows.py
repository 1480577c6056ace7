"""The one run of an approved action: claimed before it begins, reported when it ended.

It knows nothing of the audit log. Writing happens inside the caller's transaction.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from hansard_store.approvals.unit_of_work import hash_of_secret

_ADD = """
INSERT INTO approval_claim (approval_id, claim_id, state, holder, lease_ns, claimed_ns)
VALUES (?, ?, 'claimed', ?, ?, ?)
"""
_END = """
UPDATE approval_claim
SET state = :state, finished_ns = :now, result_ref = :result, error = :error
WHERE claim_id = :claim AND state IN ('claimed', 'unknown')
"""
_SETTLE = """
UPDATE approval_claim
SET state = :state, result_ref = :result, settled_ns = :now, settled_by = :by, settled_note = :note,
  settled_method = :method
WHERE approval_id = :approval AND state = 'unknown'
"""
_LOSE = "UPDATE approval_claim SET state = 'unknown' WHERE approval_id = ? AND state = 'claimed'"
_OF_CLAIM = """
SELECT approval_id, state, holder, lease_ns, claimed_ns FROM approval_claim WHERE claim_id = ?
"""
_OPEN = """
SELECT approval_id, state, holder, lease_ns, claimed_ns
FROM approval_claim INDEXED BY approval_claim_state WHERE state = 'claimed' ORDER BY claimed_ns
"""


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim as it stands."""

    approval_id: str
    state: str
    holder: str
    lease_ns: int | None
    claimed_ns: int


def claim_key(claim_id: str) -> bytes:
    """Return what is kept of a claim's id, 16 bytes of its hash.

    The id is the right to report the result. Who reads the audit log, or the store, reads the key.
    """
    return hash_of_secret(claim_id)[:16]


def add_claim(
    connection: apsw.Connection,
    approval_id: bytes,
    claim_id: str,
    *,
    holder: str,
    lease_ns: int | None,
    now_ns: int,
) -> None:
    """Claim an approval; the table itself refuses a second claim."""
    connection.execute(_ADD, (approval_id, claim_key(claim_id), holder, lease_ns, now_ns))


def find_claim(connection: apsw.Connection, claim_id: str) -> ClaimRow | None:
    """Return a claim by its id; None for what is none."""
    row: Any = connection.execute(_OF_CLAIM, (claim_key(claim_id),)).fetchone()
    return None if row is None else ClaimRow(row[0].hex(), *row[1:])


def end_claim(
    connection: apsw.Connection,
    claim_id: str,
    *,
    is_ok: bool,
    result_ref: str | None,
    error: str | None,
    now_ns: int,
) -> bool:
    """Record how it ended, also where that was unknown; False when it was recorded before."""
    parameters = {
        "claim": claim_key(claim_id),
        "state": "done" if is_ok else "failed",
        "now": now_ns,
        "result": result_ref,
        "error": error,
    }
    connection.execute(_END, parameters)
    return connection.changes() == 1


def lose_claim(connection: apsw.Connection, approval_id: bytes) -> bool:
    """Say that nobody knows how it ended; False when it is known."""
    connection.execute(_LOSE, (approval_id,))
    return connection.changes() == 1


def settle_claim(
    connection: apsw.Connection,
    approval_id: bytes,
    *,
    has_run: bool,
    result_ref: str | None,
    by: str,
    method: str | None,
    note: str,
    now_ns: int,
) -> bool:
    """Write down what a person found of an unknown outcome; False when it is not unknown."""
    parameters = {
        "approval": approval_id,
        "state": "done" if has_run else "not_run",
        "result": result_ref,
        "now": now_ns,
        "by": by,
        "method": method,
        "note": note,
    }
    connection.execute(_SETTLE, parameters)
    return connection.changes() == 1


def lost_claims(connection: apsw.Connection, *, now_ns: int) -> list[ClaimRow]:
    """Return open claims whose process is gone, or whose time to tell is over."""
    rows = [ClaimRow(row[0].hex(), *row[1:]) for row in connection.execute(_OPEN)]
    return [one for one in rows if _is_lost(one, now_ns)]


def this_process() -> str:
    """Return what names this process among all that ever ran: machine, boot, number, start."""
    return _name_of(os.getpid())


def _is_lost(claim: ClaimRow, now_ns: int) -> bool:
    if claim.lease_ns is not None:
        # An earlier time than that of the claim: the clock was set back, the lease is not longer.
        return now_ns >= claim.lease_ns
    machine, boot, number = [*claim.holder.split("/"), "", "", ""][:3]
    if machine != platform.node():
        return False  # nobody here can tell
    if boot != _boot():
        return True
    return not number.isdigit() or _name_of(int(number)) != claim.holder


def _name_of(number: int) -> str:
    return f"{platform.node()}/{_boot()}/{number}/{_start_of(number)}"


def _start_of(number: int) -> str:
    """Return when a process started, as its system tells; "" when it is gone, "?" when untold."""
    try:
        stat = Path(f"/proc/{number}/stat").read_bytes()
    except OSError:
        return _is_there(number)
    # Fields after the name, which is in parentheses and may hold anything (proc(5)): 22 is the
    # start. A zombie has ended.
    fields = stat.rpartition(b")")[2].split()
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def _is_there(number: int) -> str:
    if Path("/proc/self/stat").exists():
        return ""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        pass
    return "?"


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()[:8]
    except OSError:
        return "-"
