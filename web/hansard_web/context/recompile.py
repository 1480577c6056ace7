"""A stored compile made again from its stored request: does it come to the same (RC-15)?

Nothing is written, and no model is asked. Rules that a compile was given beside its request are
stored with it; a compressor or a decider of the program's own is not, and such a compile cannot be
made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import apsw
import orjson

from hansard_collector.derivation.rederivation import read_span
from hansard_collector.payloads import PayloadStanding, standing_of
from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.ports import Ports
from hansard_compiler.compile.record import recorded_request
from hansard_compiler.errors import HansardError
from hansard_compiler.policy.decider import RuleDecider
from hansard_compiler.policy.engine import policy_from
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.tokens.estimators import estimator_for
from hansard_store.compilations.queries import Compilation, compilations_with_id
from hansard_store.compilations.receipts import StoredReceipt, receipts_of
from hansard_store.content.payloads import Payload, folder_of, read_payload
from hansard_store.errors import StoreCorruptError

_POLICY_KEY = "hansard.compilation.policy_ref"
_WHOLE_KEY = "hansard.compilation.request_whole"
_MARKERS = ("‹redacted:".encode(), "‹withheld".encode())
_MOST_DIFFERENCES = 20


class RecompileVerdict(StrEnum):
    """What came of making a compile again."""

    EQUAL = "equal"
    DIFFERS = "differs"
    REDACTED = "redacted"  # the request is here without what retention or clearance took out
    MISSING = "missing"  # the request, or something else it takes, is not here


@dataclass(frozen=True, slots=True)
class Recompiled:
    """The verdict with what it rests on."""

    compilation_id: str
    step_id: str
    verdict: RecompileVerdict
    recorded_hash: str | None
    found_hash: str | None  # None: it was not compiled
    reasons: tuple[str, ...]


class _Unrepeatable(Exception):
    """An answer, not an error: it never leaves this module."""

    def __init__(self, verdict: RecompileVerdict, reason: str) -> None:
        super().__init__(reason)
        self.verdict = verdict
        self.reason = reason


def recompile(connection: apsw.Connection, compilation_id: str) -> Recompiled:
    """Make a compile again, by its id or a unique beginning of it, and compare the hashes.

    Takes as long as the compile did. Raises NotFoundError or AmbiguousIdError for the id.
    """
    compilation = compilations_with_id(connection, compilation_id)[0]
    try:
        data = _request(connection, compilation)
        result = _compiled(connection, compilation, data)
    except _Unrepeatable as why:
        return _recompiled(compilation, why.verdict, None, [why.reason])
    if result.compile_hash == compilation.row.hash:
        return _recompiled(compilation, RecompileVerdict.EQUAL, result, [])
    if not _is_whole(connection, compilation, data):
        reason = "the stored request is without its secrets, or what was above its clearance"
        return _recompiled(compilation, RecompileVerdict.REDACTED, result, [reason])
    reasons = list(_differences(receipts_of(connection, compilation.span), result))
    if not reasons and compilation.row.redacted:
        reason = "every decision is equal; secrets were cut out under the key of another machine"
        return _recompiled(compilation, RecompileVerdict.REDACTED, result, [reason])
    return _recompiled(
        compilation, RecompileVerdict.DIFFERS, result, reasons or ["the prompt itself differs"]
    )


def _recompiled(
    compilation: Compilation,
    verdict: RecompileVerdict,
    result: CompileResult | None,
    reasons: Sequence[str],
) -> Recompiled:
    return Recompiled(
        compilation_id=compilation.row.id,
        step_id=compilation.step_id,
        verdict=verdict,
        recorded_hash=compilation.row.hash,
        found_hash=None if result is None else result.compile_hash,
        reasons=tuple(reasons),
    )


def _request(connection: apsw.Connection, compilation: Compilation) -> bytes:
    ref = compilation.row.request_ref
    if compilation.row.hash is None or ref is None:
        raise _Unrepeatable(RecompileVerdict.MISSING, "its span names no hash or no stored request")
    standing, payload = standing_of(connection, ref)
    if payload is None:
        why = "withheld" if standing is PayloadStanding.WITHHELD else "not stored here"
        raise _Unrepeatable(RecompileVerdict.MISSING, f"its request is {why}")
    if standing is PayloadStanding.REDACTED:
        raise _Unrepeatable(
            RecompileVerdict.REDACTED, f"its request was redacted: {payload.redacted}"
        )
    return _bytes(connection, payload)


def _bytes(connection: apsw.Connection, payload: Payload) -> bytes:
    try:
        return read_payload(folder_of(connection), payload)
    except StoreCorruptError as error:
        raise _Unrepeatable(RecompileVerdict.MISSING, str(error)) from None


def _compiled(connection: apsw.Connection, compilation: Compilation, data: bytes) -> CompileResult:
    attributes: Any = read_span(connection, compilation.span).view().attributes
    policy = _policy(connection, attributes.get(_POLICY_KEY))
    ports = [one for one in (compilation.row.ports or "").split(",") if one]
    missing = [one for one in ports if one != "policy" or policy is None]
    if missing:
        raise _Unrepeatable(
            RecompileVerdict.MISSING,
            f"the program gave it a {', '.join(missing)} of its own, which is not stored",
        )
    try:
        request = recorded_request(data)
    except (HansardError, ValueError) as error:
        reason = f"its request cannot be read by this version: {error}"
        raise _Unrepeatable(RecompileVerdict.MISSING, reason) from None
    counter = estimator_for(request.provider, request.model)
    if compilation.row.counter not in (None, counter.name):
        reason = f"tokens were counted by {compilation.row.counter}, here it is {counter.name}"
        raise _Unrepeatable(RecompileVerdict.MISSING, reason)
    redactor = Redactor(folder_of(connection).key())
    try:
        return compile_context(request, Ports(counter=counter, redactor=redactor, policy=policy))
    except HansardError as error:
        raise _Unrepeatable(
            RecompileVerdict.DIFFERS, f"compiling it again fails: {error}"
        ) from None


def _policy(connection: apsw.Connection, ref: object) -> RuleDecider | None:
    """Return the rules that decided beside the request's own; None where no reference is."""
    if not isinstance(ref, str):
        return None
    standing, payload = standing_of(connection, ref)
    if payload is None or standing is not PayloadStanding.STORED:
        raise _Unrepeatable(
            RecompileVerdict.MISSING, f"the rules in force then are {standing.value}"
        )
    try:
        return RuleDecider(policy_from(orjson.loads(_bytes(connection, payload))))
    except (HansardError, KeyError, TypeError, ValueError) as error:
        reason = f"the rules in force then cannot be read by this version: {error}"
        raise _Unrepeatable(RecompileVerdict.MISSING, reason) from None


def _is_whole(connection: apsw.Connection, compilation: Compilation, data: bytes) -> bool:
    """Return whether the stored request is the one that was compiled; its sender says so."""
    if any(marker in data for marker in _MARKERS):
        return False
    attributes: Any = read_span(connection, compilation.span).view().attributes
    return attributes.get(_WHOLE_KEY, True) is not False


def _differences(recorded: Sequence[StoredReceipt], result: CompileResult) -> Iterator[str]:
    """Yield what came out otherwise, item by item."""
    found = {one.item_id: one for one in result.receipts}
    known = {one.item_id for one in recorded}
    reported = 0
    for one in recorded:
        now = found.get(one.item_id)
        was = (one.decision, one.reason, one.score_nano)
        if now is None:
            reported += 1
            yield f"{one.item_id}: is no candidate now"
        elif was != (
            now.decision, now.reason.value, None if now.score is None else now.score.total
        ):  # fmt: skip
            reported += 1
            yield (
                f"{one.item_id}: was {one.decision} ({one.reason}), "
                f"now {now.decision} ({now.reason.value})"
            )
        if reported == _MOST_DIFFERENCES:
            yield "and more"
            return
    yield from (f"{item}: was no candidate" for item in found if item not in known)
