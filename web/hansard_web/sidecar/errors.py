"""What the sidecar refuses; `app.problems` has the status of each.

SidecarError
├── RecordingDisabled     this process stores nothing, so it can receive nothing
├── NotOpen               the run or step has ended
├── NotOwner              the step belongs to another program, which must end it
├── ResultExists          a second result for a tool call
├── KeyReused             one idempotency key for two requests
├── StillWorking          the request of this key has not ended, or nobody knows how
├── InvalidBody           JSON that cannot be read, or is none
├── InvalidJson           a body of another type
├── NotRetained           content that is needed and was not stored
├── RequestRejected       the collector refuses what was sent
├── VersionRequired       a change that does not say what it changes
├── ProviderUnavailable   a provider that is none, or that this server cannot ask
└── TooManyCalls          as many model calls as may be are at work
"""

from __future__ import annotations

from hansard_compiler.errors import HansardError


class SidecarError(HansardError):
    """A request that cannot be done as it is."""

    code = "sidecar_error"


class RecordingDisabled(SidecarError):
    """This process only reads, or OpenTelemetry is switched off in it."""

    code = "recording_disabled"


class NotOpen(SidecarError):
    """What was to go on has ended."""

    code = "not_open"

    def __init__(self, kind: str, wanted: str) -> None:
        super().__init__(f"the {kind} {wanted} has ended; begin another")


class NotOwner(SidecarError):
    """Another program tells this run or step."""

    code = "not_owner"

    def __init__(self, kind: str, wanted: str) -> None:
        super().__init__(
            f"the {kind} {wanted} was not begun here: its own program tells it. "
            "To join its trace, start a run with its traceparent and nest: true"
        )


class ResultExists(SidecarError):
    """A tool call has one result."""

    code = "result_exists"

    def __init__(self, call_id: str, step_id: str) -> None:
        super().__init__(f"the tool call {call_id!r} has its result: step {step_id}")
        self.step_id = step_id


class KeyReused(SidecarError):
    """The same key with another body: one of the two is a mistake."""

    code = "idempotency_key_reused"

    def __init__(self) -> None:
        super().__init__("this Idempotency-Key came with another body before; use a new one")


class StillWorking(SidecarError):
    """The request of this key began: it works still, or the server ended meanwhile."""

    code = "outcome_unknown"

    def __init__(self) -> None:
        super().__init__(
            "the request of this Idempotency-Key has begun and not ended: it works still, or the "
            "server was stopped under it. Look at the run before you send it under a new key"
        )


class InvalidBody(SidecarError):
    """No JSON, or more than can be meant."""

    code = "invalid_json"


class InvalidJson(SidecarError):
    """The body says that it is something else."""

    code = "unsupported_type"

    def __init__(self, found: str) -> None:
        super().__init__(
            f"the body is {found[:80]!r}; send application/json (curl --json does)"
            if found
            else "send Content-Type: application/json (curl --json does)"
        )


class NotRetained(SidecarError):
    """What is needed was not stored: the retention mode forbids it, or it was deleted."""

    code = "not_retained"


class RequestRejected(SidecarError):
    """The collector refuses it, as it would from any sender; the message says why."""

    code = "rejected"


class VersionRequired(SidecarError):
    """A request that replaces rules names the version it replaces."""

    code = "version_required"

    def __init__(self) -> None:
        super().__init__(
            'say which version you replace: If-Match with the ETag of GET, or "version" in the '
            "body (0: there are no rules yet)"
        )


class ProviderUnavailable(SidecarError):
    """No adapter of this name, or it lacks what the request must bring."""

    code = "provider_unavailable"


class ProviderNotSetUp(ProviderUnavailable):
    """The server does not know how to reach it."""

    code = "provider_setup"


class TooManyCalls(SidecarError):
    """Model calls wait for their providers, and no more can be begun."""

    code = "too_many_calls"

    def __init__(self, most: int) -> None:
        super().__init__(f"{most} model calls are at work; try again when one has ended")
