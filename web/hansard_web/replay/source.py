"""The step a replay is of, as it is stored: its call, its exact bytes, its recipe, its compile."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import apsw
import orjson

from hansard import semconv
from hansard_collector.derivation.stored_span import StepReading, read_step
from hansard_collector.payloads import PayloadStanding, standing_of
from hansard_compiler.calls import Call
from hansard_compiler.compile.errors import InvalidInput
from hansard_compiler.compile.models import parse
from hansard_compiler.errors import NotFoundError
from hansard_compiler.providers.recipe import Recipe
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_store.compilations.queries import Compilation, spans_naming_compilation
from hansard_store.content.payloads import folder_of, read_unchecked
from hansard_store.errors import StoreCorruptError
from hansard_store.runs.queries import RunItem, get_run
from hansard_store.steps.queries import StepSkeleton, get_step, steps_by_number
from hansard_web.context.bodies import native_compilation

REQUEST_REF: Final = semconv.REQUEST + semconv.PAYLOAD_REF
RESPONSE_REF: Final = semconv.RESPONSE + semconv.PAYLOAD_REF
RECIPE_REF: Final = semconv.RECIPE + semconv.PAYLOAD_REF
_MODEL_ROLES: Final = ("llm", "embedding")
WITHHELD: Final = "‹withheld"
_OPEN: Final = "open"


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """A step that may be replayed; whether its bytes are here is found out when they are needed."""

    step: StepSkeleton
    run: RunItem
    reading: StepReading
    compilation: Compilation | None
    recipe: Recipe | None
    notes: tuple[str, ...] = ()

    @property
    def call(self) -> Call | None:
        return self.reading.normal.call

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self.reading.view.attributes

    @property
    def is_compile(self) -> bool:
        """Whether only the compile can be made again: no model call used it."""
        return self.step.role == "compile"


def read_source(connection: apsw.Connection, step_id: str, *, now_ns: int) -> ReplayedStep:
    """Return a step to replay; for a compile the call that used it, where there is one.

    Raises NotFoundError or AmbiguousIdError for the id, NotReplayable for the kind of step.
    """
    step = get_step(connection, step_id, now_ns=now_ns)
    notes: tuple[str, ...] = ()
    if step.role == "compile":
        used = _call_of(connection, step, now_ns=now_ns)
        if used is not None:
            notes = (f"the step is a compile; replayed is the call that used it, {used.step_id}",)
            step = used
    elif step.role not in _MODEL_ROLES:
        raise NotReplayable(ReplayReason.KIND, f"{step.step_id} is a step of role {step.role}",
                            role=step.role)  # fmt: skip
    if step.status == _OPEN:
        raise NotReplayable(ReplayReason.OPEN_STEP, step.step_id)
    run = get_run(connection, step.run_id, now_ns=now_ns)
    reading = read_step(connection, step.id)
    compilation = native_compilation(connection, step, reading, run=run.id)
    return ReplayedStep(step, run, reading, compilation, _recipe(connection, reading), notes)


def find_step(
    connection: apsw.Connection, step_id: str | None, *, now_ns: int
) -> StepSkeleton | None:
    """Return a step; None for one that was deleted meanwhile."""
    try:
        return None if step_id is None else get_step(connection, step_id, now_ns=now_ns)
    except NotFoundError:
        return None


def _call_of(
    connection: apsw.Connection, compile_step: StepSkeleton, *, now_ns: int
) -> StepSkeleton | None:
    """Return the first model call of this run that names a compile's id."""
    attributes = read_step(connection, compile_step.id).view.attributes
    compile_id = attributes.get(semconv.COMPILE_ID)
    if not isinstance(compile_id, str):
        return None
    numbers = spans_naming_compilation(connection, compile_id)
    found = steps_by_number(connection, numbers, now_ns=now_ns)
    calls = [
        step
        for number in reversed(numbers)
        if (step := found.get(number)) is not None
        and step.role in _MODEL_ROLES
        and step.run_id == compile_step.run_id
    ]
    return calls[0] if calls else None


def _recipe(connection: apsw.Connection, reading: StepReading) -> Recipe | None:
    """Return the recipe; None where the step has none (a call recorded at HTTP level)."""
    ref = reading.view.attributes.get(RECIPE_REF)
    if not isinstance(ref, str):
        return None
    try:
        return parse(Recipe, orjson.loads(stored_bytes(connection, ref)))
    except (NotReplayable, InvalidInput, orjson.JSONDecodeError):
        return None  # what it tells beside the span is a convenience: the bytes are what counts


def exact_request(connection: apsw.Connection, source: ReplayedStep) -> tuple[str, bytes]:
    """Return the reference and the bytes of the request as it was sent, or say why they are not.

    Raises NotReplayable.
    """
    attributes = source.attributes
    ref = attributes.get(REQUEST_REF)
    if not isinstance(ref, str):
        raise NotReplayable(
            ReplayReason.METADATA_ONLY if is_withheld(source) else ReplayReason.NOT_RECORDED
        )
    if attributes.get(semconv.REQUEST + semconv.PAYLOAD_REDACTED) is True or (
        source.recipe is not None and not source.recipe.request.is_exact
    ):
        raise NotReplayable(ReplayReason.SECRETS_CUT, ref)
    return ref, stored_bytes(connection, ref)


def recorded_answer(connection: apsw.Connection, source: ReplayedStep) -> bytes:
    """Return the bytes of the recorded answer; raises NotReplayable where they are not here."""
    ref = source.attributes.get(RESPONSE_REF)
    if not isinstance(ref, str):
        raise NotReplayable(ReplayReason.NO_RECORDING)
    try:
        return stored_bytes(connection, ref)
    except NotReplayable as why:
        raise NotReplayable(ReplayReason.NO_RECORDING, why.reason.meaning) from None


def stored_bytes(connection: apsw.Connection, ref: str) -> bytes:
    """Return a payload's bytes, held against its digest; raises NotReplayable."""
    standing, payload = standing_of(connection, ref)
    if standing is PayloadStanding.WITHHELD:
        raise NotReplayable(ReplayReason.METADATA_ONLY, ref)
    if payload is None:
        raise NotReplayable(ReplayReason.BYTES_MISSING, ref)
    if standing is PayloadStanding.REDACTED:
        raise NotReplayable(ReplayReason.BYTES_REDACTED, ref)
    try:
        data = read_unchecked(folder_of(connection), payload)
    except StoreCorruptError:
        raise NotReplayable(ReplayReason.BYTES_MISSING, ref) from None
    assert_hash(data, ref)
    return data


def assert_hash(data: bytes, ref: str) -> None:
    """Raise NotReplayable unless these are the bytes that a reference names."""
    found = f"sha256:{hashlib.sha256(data).hexdigest()}"
    if found != ref.lower():
        raise NotReplayable(ReplayReason.HASH_MISMATCH, f"{found} in place of {ref}", found=found)


def is_withheld(source: ReplayedStep) -> bool:
    """Whether the step was recorded without its content: sizes and digests alone."""
    attributes = source.attributes
    sized = any(
        key.endswith(semconv.SIZE_SUFFIX)
        and key.removesuffix(semconv.SIZE_SUFFIX) not in attributes
        and key.removesuffix(semconv.SIZE_SUFFIX) + semconv.REF_SUFFIX not in attributes
        for key in attributes
    )
    return sized or any(WITHHELD in one for one in attributes.values() if isinstance(one, str))
