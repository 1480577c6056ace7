"""Why a step is not replayed, or a replay came to nothing: the closed list, each with its meaning.

The same code stands in the API's error, in the row of the replay, on the command line and in the
exception of the SDK.
"""

from __future__ import annotations

from hansard_compiler.calls import Json
from hansard_compiler.errors import Code, HansardError


class ReplayReason(Code):
    """Every reason of a replay that was refused or failed. `docs/replay.md` lists them all."""

    # the step
    KIND = "kind", "only model calls and compiles replay; a tool is never run again"
    OPEN_STEP = "open_step", "the step has not ended yet"
    # its bytes
    NOT_RECORDED = "not_recorded", "the request's bytes were never recorded"
    BYTES_MISSING = "bytes_missing", "the stored request is not here: lost, deleted or unreadable"
    BYTES_REDACTED = "bytes_redacted", "the stored request was redacted after it was sent"
    SECRETS_CUT = "secrets_cut", "secrets were cut out of the request before it was stored"
    METADATA_ONLY = "metadata_only", "metadata_only keeps no content, so there is nothing to send"
    HASH_MISMATCH = "hash_mismatch", "the bytes are not those that their hash promises"
    RECIPE_UNREADABLE = "recipe_unreadable", "the recipe is of another version, or damaged"
    NO_RECORDING = "no_recording", "the answer was not recorded, or its bytes are not here"
    # the provider
    PROVIDER_UNKNOWN = "provider_unknown", "no adapter speaks to this provider at this path"
    PROVIDER_NOT_CONFIGURED = "provider_not_configured", "the server has no address and key for it"
    KEY_MISSING = "key_missing", "there is no key for the provider in the environment"
    PACKAGE_MISSING = "package_missing", "the provider's package is not installed"
    OTHER_ADDRESS = "other_address", "the call went to another address than is configured here"
    # what is to be changed
    NO_COMPILATION = "no_compilation", "this change needs a stored compile, and there is none"
    MUTATION_INVALID = "mutation_invalid", "the change cannot be meant"
    ITEM_UNKNOWN = "item_unknown", "the change names something that is not in the context"
    FIELD_ABSENT = (
        "field_absent",
        "the change takes away or replaces a field that the request lacks",
    )
    CONTEXT_EMPTY = "context_empty", "the changes leave nothing to send"
    BROKEN_PAIRS = "broken_pairs", "the changes part a tool call from its result"
    COMPILE_FAILED = "compile_failed", "the changed context cannot be compiled"
    NOT_RENDERABLE = "not_renderable", "the provider's API has no form for the changed request"
    # what the provider would do besides answering
    PROVIDER_SIDE_EFFECTS = (
        "provider_side_effects",
        "the request has its provider run tools or keep state, which a replay would do again",
    )
    POLICY_DENIED = "policy_denied", "a rule denies sending it"
    APPROVAL_REFUSED = "approval_refused", "the approval to send it cannot be used"
    # a fork that goes on live
    NOT_WAITING = "not_waiting", "the replay is not one that can go on"
    RESULT_UNKNOWN = "result_unknown", "no tool call of the replay waits for this result"
    NEEDS_RESULTS = "needs_results", "the model asks for tools whose results were not recorded"
    NEEDS_APPROVAL = "needs_approval", "a tool call or the request itself is waiting for a decision"
    TURN_LIMIT = "turn_limit", "as many live turns were made as were allowed"
    SPEND_LIMIT = "spend_limit", "the next live turn could cost more than is allowed"
    # sent, and it came to nothing
    PROVIDER_FAILED = "provider_failed", "the provider gave no usable answer"
    MODEL_UNKNOWN = "model_unknown", "the provider does not know the model (any more)"
    INTERRUPTED = "interrupted", "the process that worked on it ended"
    INTERNAL = "internal", "the replay failed in a way it should not"


class NotReplayable(HansardError):
    """A replay that is refused before anything is sent."""

    code = "not_replayable"

    def __init__(self, reason: ReplayReason, detail: str = "", **facts: object) -> None:
        super().__init__(f"{reason.meaning}: {detail}" if detail else reason.meaning)
        self.reason = reason
        self.detail = detail
        self.facts: Json = dict(facts)
        self.replay_id: str | None = None  # of the row that records it, once there is one
