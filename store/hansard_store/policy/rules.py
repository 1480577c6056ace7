"""Policy rules with their versions.

A version is a whole list of rule sets. The latest of a source is in force, older ones stay: what a
check says of a rule can be read again. Writing commits on the caller's thread, and survives a
power cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Literal

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.policy.rules import RuleSet
from hansard_store.audit.seal_marks import is_altered, is_removed
from hansard_store.database.connections import (
    accountability_transaction,
    open_for_accountability,
    open_to_question,
)
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.stored_json import json_of, json_text, read_only
from hansard_store.errors import PolicyAlteredError, StoreCorruptError, VersionConflictError

Source = Literal["api", "file"]
_SEALED: Final = ("policy_version", "policy_rule_set")

_SELECT = "SELECT id, time_ns, source, actor, hash FROM policy_version"
_LATEST = f"{_SELECT} WHERE source = ? ORDER BY id DESC LIMIT 1"
_LIST = f"{_SELECT} WHERE id < :before ORDER BY id DESC LIMIT :limit"
_ONE = f"{_SELECT} WHERE id = ?"
_SETS = "SELECT document FROM policy_rule_set WHERE policy = ? ORDER BY position"
# No number is assigned twice, even if its version was removed by hand.
_ADD_VERSION = """
INSERT INTO policy_version (id, time_ns, source, actor, hash)
SELECT 1 + coalesce(max(number), 0), ?, ?, ?, ? FROM (
  SELECT id AS number FROM policy_version
  UNION ALL
  SELECT CAST(row_key AS INTEGER) FROM seal_row WHERE table_name = 'policy_version'
  UNION ALL
  SELECT CAST(row_key AS INTEGER) FROM seal_due WHERE table_name = 'policy_version'
)
RETURNING id
"""
_ADD_SET = """
INSERT INTO policy_rule_set (policy, position, name, version, hash, document)
VALUES (?, ?, ?, ?, ?, ?)
"""
_ADD_RULE = """
INSERT INTO policy_rule (policy, rule_set, rule_id, version, effect, priority, body)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_HISTORY = """
SELECT policy, time_ns, source, rule_set, version, effect, priority, body
FROM policy_rule JOIN policy_version ON policy_version.id = policy_rule.policy
WHERE rule_id = :rule AND policy < :before ORDER BY policy DESC, rule_set LIMIT :limit
"""
_ABOVE_ALL = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class RuleSetInput:
    """A rule set that was read, with what it was read from."""

    read: RuleSet
    document: Json


@dataclass(frozen=True, slots=True)
class PolicyVersion:
    """When which rules took effect, and who saw to it."""

    id: int
    time_ns: int
    source: str
    actor: str
    hash: str


@dataclass(frozen=True, slots=True)
class RuleVersion:
    """One rule as it was in one version of the rules."""

    policy: int
    time_ns: int
    source: str
    rule_set: str
    version: str  # of the rule, as its author numbers it
    effect: str
    priority: int
    body: Json


def latest_policy(connection: apsw.Connection, source: Source) -> PolicyVersion | None:
    """Return the version of a source that is in force; None before the first."""
    row: Any = connection.execute(_LATEST, (source,)).fetchone()
    return None if row is None else PolicyVersion(*row)


def find_policy(connection: apsw.Connection, number: int) -> PolicyVersion | None:
    """Return a version by its number."""
    row: Any = connection.execute(_ONE, (number,)).fetchone()
    return None if row is None else PolicyVersion(*row)


def list_policies(
    connection: apsw.Connection, *, before: int = _ABOVE_ALL, limit: int = 50
) -> list[PolicyVersion]:
    """Return versions, the newest first, those before a number."""
    rows: Any = connection.execute(_LIST, {"before": before, "limit": limit})
    return [PolicyVersion(*row) for row in rows]


def rule_sets_of(connection: apsw.Connection, number: int) -> list[Json]:
    """Return the rule sets of a version as they were sent; raises StoreCorruptError."""
    try:
        rows: Any = connection.execute(_SETS, (number,)).fetchall()
        return [read_only(json_of(text)) for (text,) in rows]
    except ValueError:  # no JSON, or no UTF-8
        raise StoreCorruptError(f"the rule sets of policy version {number} are no JSON") from None


def rule_history(
    connection: apsw.Connection, rule_id: str, *, before: int = _ABOVE_ALL, limit: int = 50
) -> list[RuleVersion]:
    """Return a rule as it was in each version that has it, the newest first."""
    rows: Any = connection.execute(_HISTORY, {"rule": rule_id, "before": before, "limit": limit})
    return [RuleVersion(*[*columns, read_only(json_of(body))]) for *columns, body in rows]


def put_policy(
    folder: DataFolder,
    sets: Sequence[RuleSetInput],
    *,
    source: Source,
    actor: str,
    policy_hash: str,
    expected: int | None,
    now_ns: int,
) -> PolicyVersion:
    """Put rules in force and return their version; equal ones stay as they are.

    `expected` is the version they are to follow (0: none yet), None follows any. Raises
    VersionConflictError when another one came first.
    """
    with accountability_transaction(folder) as connection:
        latest = latest_policy(connection, source)
        found = latest.id if latest else 0
        if expected is not None and expected != found:
            raise VersionConflictError("policy", expected=expected, found=found)
        is_equal = latest is not None and (latest.hash, latest.actor) == (policy_hash, actor)
        if latest is not None and is_equal and not _is_altered(connection, latest.id):
            return latest
        row = (now_ns, source, actor, policy_hash)
        number = int(connection.execute(_ADD_VERSION, row).get)
        _add_sets(connection, number, sets)
    return PolicyVersion(number, *row)


def check_unaltered(folder: DataFolder, number: int) -> None:
    """Raise PolicyAlteredError where the rules of the latest version were altered by hand.

    Also where a rule set of it, or a later version, was removed.
    """
    with closing(open_for_accountability(folder)) as connection:
        if _is_altered(connection, number):
            raise PolicyAlteredError(number)


def policy_problem(folder: DataFolder) -> str | None:
    """Return why nothing is decided by the rules that were put, None where they hold.

    Raises StoreError where the store cannot be opened.
    """
    with closing(open_to_question(folder, _SEALED)) as connection:
        latest = latest_policy(connection, "api")
        number = latest.id if latest else 0
        return str(PolicyAlteredError(number)) if _is_altered(connection, number) else None


def _is_altered(connection: apsw.Connection, number: int) -> bool:
    return (
        is_altered(connection, "policy_version", "id", number)
        or is_altered(connection, "policy_rule_set", "policy", number)
        or is_removed(connection, "policy_version", since=number)
        or is_removed(connection, "policy_rule_set", since=number)
    )


def _add_sets(connection: apsw.Connection, number: int, sets: Sequence[RuleSetInput]) -> None:
    for position, rule_set in enumerate(sets):
        one = rule_set.read
        document = json_text(rule_set.document)
        connection.execute(_ADD_SET, (number, position, one.name, one.version, one.hash, document))
        bodies = {body["id"]: body for body in rule_set.document["rules"]}
        for rule in one.rules:
            connection.execute(
                _ADD_RULE,
                (
                    number, one.name, rule.id, rule.version, str(rule.effect), rule.priority,
                    json_text(bodies[rule.id]),
                ),
            )  # fmt: skip
