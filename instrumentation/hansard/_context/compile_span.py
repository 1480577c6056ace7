"""The span of a compile: its decisions as columns, its request, result and contents as payloads.

Nothing here raises into the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from hansard import semconv
from hansard._context.compiled_step import RecordedCompile
from hansard._tracing.context import address_of
from hansard._tracing.observation import (
    UNRECORDED,
    Observation,
    begin,
    clean_attribute,
    is_exact,
    put_bytes,
)
from hansard._tracing.open_span import quietly
from hansard_compiler.compile.record import (
    CHECKS_MEDIA_TYPE,
    POLICY_MEDIA_TYPE,
    REQUEST_MEDIA_TYPE,
    RESULT_MEDIA_TYPE,
    attributes_of,
    attributes_of_checks,
    checks_bytes,
    policy_bytes,
    result_bytes,
    stored_request,
)
from hansard_compiler.errors import HansardError
from hansard_compiler.redaction.metadata_keys import KeyKind, kind_of
from hansard_compiler.retention_modes import RetentionMode

if TYPE_CHECKING:
    from hansard._runtime.recorder import Recorder
    from hansard_compiler.compile.engine import CompileResult
    from hansard_compiler.compile.ports import Ports
    from hansard_compiler.policy.checks import PolicyCheck

_TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"


class CompileSpan:
    """One compile while it runs; without a recorder it does nothing."""

    def __init__(self, observation: Observation) -> None:
        self._observation = observation

    @classmethod
    def begin(cls, recorder: Recorder | None) -> CompileSpan:
        """Start the span in the current context."""
        if recorder is None:
            return cls(UNRECORDED)
        attributes = {semconv.HANSARD_SCHEMA_VERSION: semconv.SCHEMA_VERSION}
        return cls(begin(recorder, semconv.SPAN_COMPILE, attributes) or UNRECORDED)

    @property
    def address(self) -> tuple[str, str] | None:
        """Run id and step id of the span; None where there is none."""
        return address_of(self._observation.span)

    @property
    def step_id(self) -> str:
        return self.address[1] if self.address else ""

    def running(self) -> AbstractContextManager[None]:
        """Make the span current: the call of a compressor is inside it."""
        return self._observation.running()

    def fail(self, error: BaseException, *, checks: Sequence[PolicyCheck]) -> None:
        """Record how the compile failed, and the policy's decisions until then; nothing else."""
        with quietly("policy checks"):
            self._keep_checks(checks)
        if isinstance(error, HansardError):
            self._observation.set_attribute(semconv.ERROR_CODE, error.code)
        self._observation.fail(error)

    def keep(
        self, result: CompileResult, ports: Ports, *, checks: Sequence[PolicyCheck]
    ) -> RecordedCompile:
        """Store payloads and columns, and end the span; `ports` are those without rules."""
        recorded = RecordedCompile(step_id=self.step_id)
        with quietly("compile"):
            if self._observation.is_recording:
                self._keep_checks(checks)
                recorded = self._keep(result, ports)
        self._observation.end()
        return recorded

    def _keep(self, result: CompileResult, ports: Ports) -> RecordedCompile:
        recorder = self._observation.recorder
        columns = attributes_of(result, ports)
        request, request_ref, result_ref = stored_request(result), "", ""
        policy_ref, rules = "", policy_bytes(ports)
        if recorder.settings.retention is not RetentionMode.METADATA_ONLY:
            moved = self._keep_contents(result)
            columns = {key: _renamed(value, moved) for key, value in columns.items()}
            request_ref = put_bytes(recorder, request.data, REQUEST_MEDIA_TYPE)
            result_ref = put_bytes(
                recorder, _renamed_in(result_bytes(result), moved), RESULT_MEDIA_TYPE
            )
            policy_ref = "" if rules is None else put_bytes(recorder, rules, POLICY_MEDIA_TYPE)
        is_whole = request.is_whole and is_exact(request_ref, request.data)
        refs = {
            semconv.COMPILE_REQUEST_REF: request_ref,
            semconv.COMPILE_RESULT_REF: result_ref,
            semconv.COMPILE_POLICY_REF: policy_ref,
        }
        columns |= {**_known(refs), semconv.COMPILE_WHOLE: is_whole}
        self._observation.span.set_attributes(clean_columns(recorder, columns))
        return RecordedCompile(
            step_id=self.step_id,
            request_ref=request_ref,
            result_ref=result_ref,
            is_whole=is_whole,
            ports=tuple(columns[semconv.COMPILE_PORTS]),
        )

    def _keep_contents(self, result: CompileResult) -> dict[str, str]:
        """Keep every content the receipts refer to; returns the references that changed by it.

        The compile has cut secrets out of texts; under the key of a JSON member there may be more.
        """
        moved: dict[str, str] = {}
        for ref, data in result.payloads().items():
            is_json = data[:1] in (b"{", b"[")
            stored = put_bytes(self._observation.recorder, data, _JSON if is_json else _TEXT)
            if stored and stored != ref:
                moved[ref] = stored
        return moved

    def _keep_checks(self, checks: Sequence[PolicyCheck]) -> None:
        """Record every check of policy in a span of its own, inside this one."""
        if not checks or not self._observation.is_recording:
            return
        recorder = self._observation.recorder
        with self.running():
            attributes = {semconv.HANSARD_SCHEMA_VERSION: semconv.SCHEMA_VERSION}
            span = begin(recorder, semconv.SPAN_POLICY_CHECK, attributes)
        if span is None:
            return
        try:
            if span.is_recording:
                columns = attributes_of_checks(checks)
                ref = put_bytes(recorder, checks_bytes(checks), CHECKS_MEDIA_TYPE)
                columns |= _known({semconv.POLICY_CHECKS_REF: ref})
                span.span.set_attributes(clean_columns(recorder, columns))
        finally:
            span.end()


def _known(refs: Mapping[str, str]) -> dict[str, str]:
    return {key: ref for key, ref in refs.items() if ref}


def _renamed(value: Any, moved: Mapping[str, str]) -> Any:
    if not moved or not isinstance(value, list):
        return value
    return [moved.get(one, one) for one in value]


def _renamed_in(data: bytes, moved: Mapping[str, str]) -> bytes:
    for before, after in moved.items():
        data = data.replace(before.encode(), after.encode())
    return data


def clean_columns(recorder: Recorder, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as the retention mode lets them out.

    One scan of a whole column proves most of them clean: thousands of texts cost what one does.
    """
    mode = recorder.settings.retention
    return {key: _clean(recorder, key, value, mode) for key, value in columns.items()}


def _clean(recorder: Recorder, key: str, value: Any, mode: RetentionMode) -> Any:
    texts = [value] if isinstance(value, str) else value
    if not texts or not isinstance(texts, list) or not isinstance(texts[0], str):
        return value
    if mode is RetentionMode.METADATA_ONLY:
        cleaned = [_withheld(recorder, key, text) for text in texts]
    else:
        cleaned = _redacted(recorder, key, texts, mode)
    return cleaned[0] if isinstance(value, str) else cleaned


def _redacted(recorder: Recorder, key: str, texts: list[str], mode: RetentionMode) -> list[str]:
    joined = "\n".join(texts)
    if not joined.isascii():  # a lone surrogate would break the export
        texts = [text.encode("utf-8", "backslashreplace").decode() for text in texts]
        joined = "\n".join(texts)
    if mode is RetentionMode.FULL_PAYLOADS or not recorder.redactor.scan_bytes(joined.encode()):
        return texts
    return [recorder.redactor.redact_text(text, key=key).text for text in texts]


def _withheld(recorder: Recorder, key: str, text: str) -> str:
    if text and kind_of(key) is KeyKind.DIGEST:
        return f"hmac-sha256:{recorder.redactor.keyed_digest(text.encode())}"
    return str(clean_attribute(recorder, key, text)) if text else ""
