"""Why an item is where it is: the closed list of reason codes, each with its meaning."""

from __future__ import annotations

from hansard_compiler.errors import Code


class ReasonCode(Code):
    """Every code a receipt or a pass may give. `docs/compiler.md` lists them all."""

    # in, because it may never be dropped
    LATEST_USER_REQUEST = "latest_user_request", "the latest thing the user asked"
    HARD_CONSTRAINT = "hard_constraint", "a constraint not marked `soft`"
    BLOCKING_TOOL_RESULT = "blocking_tool_result", "a tool result tagged `blocking`, not `resolved`"
    REQUIRED_POLICY = "required_policy", "a policy item tagged `required`"
    REQUIRED_KIND = "required_kind", "its kind is always sent (`required_kinds`)"
    REQUIRED_GROUP = "required_group", "cannot be parted from an item that is never dropped"
    # in, by rank
    WITHIN_BUDGET = "within_budget", "ranked high enough to fit"
    PINNED = "pinned", "fits, and its pin carried it"
    DEPENDENCY = "dependency", "an item that went in depends on it, or cannot be parted from it"
    KEPT_STABLE = "kept_stable", "was in last turn; what would replace it is not better by enough"
    # in, changed
    COMPRESSED_TO_FIT = "compressed_to_fit", "shortened: whole, it did not fit"
    SECRETS_REMOVED = "secrets_removed", "credentials were cut out of it"
    POLICY_REDACTED = "policy_redacted", "a rule had parts of it, or all of it, cut out"
    # out
    EXPIRED = "expired", "past its time to live"
    REMOVED_BY_REPLAY = "removed_by_replay", "taken out for this replay of the original"
    OUT_OF_SCOPE = "out_of_scope", "belongs to another scope than this compile's"
    DUPLICATE = "duplicate", "the same content is in a copy trusted at least as much"
    CONFLICT_LOST = "conflict_lost", "contradicts an item that is more trusted or fresher"
    SUPERSEDED = "superseded", "a later correction replaces it"
    INVALIDATED = "invalidated", "a memory that somebody took back"
    REVIEW_PENDING = "review_pending", "a memory that waits for a person: a trusted one contradicts"
    BELOW_FLOOR = "below_floor", "scores below `min_score`"
    OVER_BUDGET = "over_budget", "did not fit into what its class and those before it left"
    COMPRESSION_FAILED = "compression_failed", "did not fit, and could not be made to"
    GROUP_WITHHELD = "group_withheld", "cannot be parted from an item that is out"
    SENSITIVITY_WITHHELD = "sensitivity_withheld", "more sensitive than this compile is cleared for"
    POLICY_DENIED = "policy_denied", "a rule denies it"
    APPROVAL_REQUIRED = "approval_required", "a rule asks for an approval first"
    POLICY_FAILED = "policy_failed", "its policy could not be evaluated, which denies"
    # what a pass says of an item it leaves as it is
    NORMALIZED = "normalized", "is a context item"
    VALID = "valid", "has all it needs"
    UNIQUE = "unique", "no copy of it is in"
    CONSIDERED = "considered", "it and all it depends on are candidates"
    CONSISTENT = "consistent", "contradicts nothing"
    CONFLICT_WON = "conflict_won", "contradicted, and preferred"
    CONFLICT_OPEN = "conflict_open", "contradicts an item that may not be dropped either"
    POSSIBLE_CONFLICT = "possible_conflict", "may contradict an item that is kept as well"
    SCORED = "scored", "has a score"
    NOT_COMPRESSED = "not_compressed", "went in as it is"
    ALLOWED = "allowed", "policy allows it"
    FORESEEN = "foreseen", "takes no budget: policy will withhold it"
    PLACED_STABLE_PREFIX = "placed_stable_prefix", "stands in the stable prefix"
    PLACED_TASK_CONTEXT = "placed_task_context", "stands in the task context"
    PLACED_VOLATILE_SUFFIX = "placed_volatile_suffix", "stands in the volatile suffix"
    RENDERED = "rendered", "is in the payload"
    RECORDED = "recorded", "has its receipt"
