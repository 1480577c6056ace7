"""The policy in force: rule sets put through the API, and those read from files.

Files are looked at before every check, and read again when they changed. A file that cannot be used
leaves what was in force before, and says so; at start there is nothing before, so the server does
not start. Stored rules that something other than Hansard altered decide nothing; they are checked
whenever they were read from the store.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.errors import PolicyRuleError
from hansard_compiler.policy.files import read_document, shipped_document
from hansard_compiler.policy.rules import parse_rule_set
from hansard_store.approvals.records import PolicyNote
from hansard_store.content.retention import Retention
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import PolicyAlteredError, StoreCorruptError, StoreError
from hansard_store.policy.checks import check_row, record_check
from hansard_store.policy.rules import (
    PolicyVersion,
    RuleSetInput,
    check_unaltered,
    latest_policy,
    put_policy,
    rule_sets_of,
)
from hansard_store.policy.stored_policy import EvaluatePolicy, PolicyQuestion, ids_of, note_of

SHIPPED_PREFIX: Final = "shipped:"
_log = logging.getLogger("hansard.policy")
_Read = Callable[[], AbstractContextManager[apsw.Connection]]
_Stamp = tuple[int, int, int]  # of a file: device and inode in one, size, time of change


@dataclass(frozen=True, slots=True)
class RulesInForce:
    """What is checked against."""

    policy: Policy
    put: tuple[RuleSetInput, ...]  # through the API
    put_version: PolicyVersion | None
    read: tuple[tuple[str, RuleSetInput], ...]  # from files: path and set
    problem: str | None = None  # why a file, or what was put, as it is now, is not in force

    @property
    def version(self) -> int:
        """The number that a replacement of the rules of the API must name; 0: there are none."""
        return self.put_version.id if self.put_version else 0


class PolicyService:
    """The rules in force, also when another process changes them.

    The lock guards what was read last; routes on any thread ask.
    """

    def __init__(self, folder: DataFolder, read: _Read, files: Sequence[Path] = ()) -> None:
        """Read everything once; raises PolicyRuleError where a file cannot be used."""
        self._folder = folder
        self._read = read
        self._files = tuple(files)
        self._lock = threading.Lock()
        self._stamps: tuple[_Stamp | None, ...] = ()
        self._current = RulesInForce(Policy(), (), None, ())
        self._is_checked = False  # whether the stored rules, as read last, are unaltered
        self._unusable: str | None = None  # why the stored rules, as read last, cannot be used
        if files:
            self._current = self._made(self._put_sets(), self._read_files())
            self._note_files(self._current)

    def in_force(self) -> RulesInForce:
        """Return what is in force now.

        Raises PolicyAlteredError, StoreCorruptError where the stored rules cannot be used, and
        StoreError where the store cannot be read.
        """
        with self._lock:
            current = self._looked_at()
            if not self._is_checked:
                self._check(current.version)
                self._is_checked = True
            return current

    def shown(self) -> RulesInForce:
        """Return what there is; with its problem where it is not in force."""
        try:
            return self.in_force()
        except (PolicyAlteredError, StoreCorruptError) as error:
            return replace(self._current, problem=str(error))

    def _check(self, version: int) -> None:
        try:
            check_unaltered(self._folder, version)
        except PolicyAlteredError as error:
            _log.error("%s", error)
            raise
        if self._unusable is not None:
            raise StoreCorruptError(f"the stored rules of policy cannot be used: {self._unusable}")

    def _looked_at(self) -> RulesInForce:
        """Return what the store and the files say now, altered or not."""
        with self._read() as connection:
            latest = latest_policy(connection, "api")
        stamps = tuple(_stamp(path) for path in self._files)
        is_same_put = latest == self._current.put_version
        if not is_same_put or stamps != self._stamps:
            self._renew(stamps, is_same_put=is_same_put)
        return self._current

    def replace(
        self, sets: Sequence[RuleSetInput], *, expected: int | None, actor: str
    ) -> RulesInForce:
        """Put rule sets in force in place of those that were put before, and return all of it.

        Raises PolicyRuleError where they cannot be used together with the files' sets, and
        VersionConflictError where somebody was first.
        """
        with self._lock:
            files = self._looked_at().read
        policy = Policy([one.read for one in (*sets, *(rule_set for _, rule_set in files))])
        put_policy(
            self._folder,
            sets,
            source="api",
            actor=actor,
            policy_hash=policy.hash,
            expected=expected,
            now_ns=time.time_ns(),
        )
        return self.in_force()

    def _renew(self, stamps: tuple[_Stamp | None, ...], *, is_same_put: bool) -> None:
        put = (self._current.put_version, self._current.put) if is_same_put else self._put_sets()
        if stamps == self._stamps:
            self._current = self._made(put, self._current.read, problem=self._current.problem)
            return
        try:
            made = self._made(put, self._read_files())
            self._note_files(made)
        except PolicyRuleError as error:
            _log.warning("%s; the rules read before stay in force", error)
            made = self._made(put, self._current.read, problem=str(error))
        self._current = made

    def _put_sets(self) -> tuple[PolicyVersion | None, tuple[RuleSetInput, ...]]:
        self._is_checked, self._unusable = False, None
        with self._read() as connection:
            latest = latest_policy(connection, "api")
            try:
                documents = rule_sets_of(connection, latest.id) if latest else []
                sets = tuple(given_set(one, where="stored rules") for one in documents)
                Policy([one.read for one in sets])
            except (PolicyRuleError, StoreCorruptError) as error:  # others can be put instead
                self._unusable, sets = str(error), ()
        return latest, sets

    def _read_files(self) -> tuple[tuple[str, RuleSetInput], ...]:
        self._stamps = tuple(_stamp(path) for path in self._files)
        return tuple((str(path), read_file(path)) for path in self._files)

    def _made(
        self,
        put: tuple[PolicyVersion | None, tuple[RuleSetInput, ...]],
        files: tuple[tuple[str, RuleSetInput], ...],
        *,
        problem: str | None = None,
    ) -> RulesInForce:
        version, sets = put
        policy = Policy([one.read for one in (*sets, *(rule_set for _, rule_set in files))])
        return RulesInForce(policy, sets, version, files, problem)

    def _note_files(self, made: RulesInForce) -> None:
        """Keep the rules of files as a version, so that a check's rule can be read again."""
        if not made.read:
            return
        sets = [rule_set for _, rule_set in made.read]
        try:
            put_policy(
                self._folder,
                sets,
                source="file",
                actor=", ".join(path for path, _ in made.read),
                policy_hash=Policy([one.read for one in sets]).hash,
                expected=None,
                now_ns=time.time_ns(),
            )
        except StoreError as error:  # the rules hold all the same
            _log.warning("the version of the policy's files is not kept: %s", error)


def given_set(value: Any, *, where: str) -> RuleSetInput:
    """Return a rule set of plain values, or `shipped:NAME`; raises PolicyRuleError."""
    if isinstance(value, str):
        if not value.startswith(SHIPPED_PREFIX):
            raise PolicyRuleError(where, f"expected a rule set, or {SHIPPED_PREFIX}NAME")
        value = shipped_document(value.removeprefix(SHIPPED_PREFIX))
    return RuleSetInput(parse_rule_set(value, where=where), value)


def given_sets(values: Sequence[Any]) -> list[RuleSetInput]:
    """Return rule sets as a request gives them; raises PolicyRuleError, with the place."""
    return [given_set(one, where=f"rule_sets[{at}]") for at, one in enumerate(values)]


def read_file(path: Path) -> RuleSetInput:
    """Return the rule set of a file, or of `shipped:NAME`; raises PolicyRuleError."""
    if str(path).startswith(SHIPPED_PREFIX):
        return given_set(str(path), where=str(path))
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PolicyRuleError(str(path), f"cannot be read: {error.strerror}") from None
    document: Json = read_document(data, name=path.name)
    return RuleSetInput(parse_rule_set(document, where=path.name), document)


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


# How proposals are judged by the rules in force.


def policy_of(rules: PolicyService, retention: Retention, folder: DataFolder) -> EvaluatePolicy:
    """Return how proposals are judged by the rules in force; every check is recorded."""

    def ask(question: PolicyQuestion) -> PolicyNote:
        current = rules.in_force()
        if not current.put and not current.read:
            return PolicyNote(facts=question.facts)  # nobody set up any rules
        check = question.check(current.policy)
        row = check_row(retention, check, now_ns=time.time_ns())
        trace_id, span_id = ids_of(question)
        number = record_check(folder, row, trace_id=trace_id, span_id=span_id)
        return note_of(check, question, check_id=number)

    return ask
