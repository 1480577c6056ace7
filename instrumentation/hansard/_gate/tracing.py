"""The span of a gated call: it mirrors the state of the approval, and is never the record of it.

requested → allowed or waiting → decided → ran → returned. Where the decision comes after the span
of the proposal has ended, the span that runs the call is linked to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.trace import Link

from hansard import semconv
from hansard._gate.arguments import Json
from hansard._gate.tools import GatedTool
from hansard._runtime import recorder as _state
from hansard._tracing.context import address_of, remote_step
from hansard._tracing.observation import UNRECORDED, Observation, begin, log_failure
from hansard.errors import GateError
from hansard.results import approver_names


class Mirror:
    """The span of one gated call; without a recorder, nothing. Never raises."""

    def __init__(self, observed: Observation, tool: GatedTool) -> None:
        self._observed = observed
        self._plan = tool.plan

    @classmethod
    def begin(cls, tool: GatedTool, arguments: Json, *, proposed_in: str | None = None) -> Mirror:
        """Begin the span of a call and make it the current one."""
        recorder = _state.active()
        if recorder is None:
            return cls(UNRECORDED, tool)
        attributes = {**tool.plan.attributes_for(recorder), semconv.TOOL_EFFECT: tool.effect}
        links = _links_to(proposed_in)
        observed = begin(recorder, tool.plan.span_name, attributes, links=links) or UNRECORDED
        if observed.is_recording:
            try:
                tool.plan.record_call(observed, arguments)
            except Exception as error:
                log_failure("arguments", error)
        observed.enter()
        return cls(observed, tool)

    @property
    def step_id(self) -> tuple[str, str] | tuple[None, None]:
        """Run id and step id, as the store knows them; neither where nothing is recorded."""
        if not self._observed.is_recording:
            return None, None
        return address_of(self._observed.span) or (None, None)

    def approval(self, approval: Mapping[str, Any]) -> None:
        """Record id, status and hash of the approval."""
        self._set(semconv.APPROVAL_ID, approval.get("approval_id"))
        self._set(semconv.APPROVAL_STATUS, approval.get("status"))
        self._set(semconv.APPROVAL_ARGUMENTS_HASH, approval.get("arguments_hash"))

    def event(self, name: str, **attributes: object) -> None:
        """Add an event of the approval; attributes that are None or empty are left out."""
        known = {key: one for key, one in attributes.items() if one not in (None, [], "")}
        named = {f"hansard.approval.{key}": one for key, one in known.items()}
        self._observed.add_event(name, named)

    def decided(self, approval: Mapping[str, Any]) -> None:
        """Record who decided, and how."""
        self.event(
            semconv.EVENT_APPROVAL_DECIDED,
            id=approval.get("approval_id"),
            status=approval.get("status"),
            by=approver_names(approval) or approval.get("decided_by"),
            reason=approval.get("reason"),
        )

    def refused(self, tool: GatedTool, error: BaseException) -> None:
        """Record that the gate refused the call; an error of the tool is not that."""
        if isinstance(error, GateError):
            self.event(semconv.EVENT_GATE_REFUSED, tool=tool.name, reason=error.code)

    def pause(self) -> None:
        """Leave the span: the rest of the call is awaited in another context."""
        self._observed.pause()

    def enter(self) -> None:
        """Make the span the current one again."""
        self._observed.enter()

    def done(self, result: Any) -> None:
        """End the span with the result for the model."""
        self._observed.leave()
        self._plan.finish(self._observed, result)

    def failed(self, error: BaseException) -> None:
        """End the span with the error that the caller gets."""
        self._observed.leave()
        self._observed.fail(error)

    def _set(self, key: str, value: object) -> None:
        if value is not None:
            self._observed.set_attribute(key, value)


def _links_to(step_id: str | None) -> tuple[Link, ...]:
    proposal = remote_step(step_id)
    return () if proposal is None else (Link(proposal, {semconv.LINK_TYPE: "approval_request"}),)
