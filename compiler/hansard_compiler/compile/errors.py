"""What a compile refuses, each with the numbers that explain it and never with content.

CompileError               nothing was compiled and nothing is recorded
├── InvalidInput           fields that are missing, unknown or out of range (HTTP 400)
│   ├── UnknownSchemaVersion
│   ├── InvalidItem          one item: its id, the field, what is wrong
│   ├── MissingProvenance    items that do not say where they come from
│   ├── ItemTooLarge
│   ├── InvalidBudget        negative, or a reserve larger than the budget
│   ├── DependencyCycle
│   └── OrphanToolResult     answers to calls that nobody made
├── RequiredOverBudget     what may never be dropped does not fit (HTTP 422)
├── RequiredWithheld       what may never be dropped may not be shown either (HTTP 403)
└── ScorerUnavailable      the scorer named needs an extra that is not installed (HTTP 501)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hansard_compiler.errors import HansardError

_MOST_NAMED = 20


class CompileError(HansardError):
    """A context that cannot be compiled."""

    code = "compile_failed"


@dataclass(frozen=True, slots=True)
class CompileProblem:
    """One thing wrong with an input: where, and what, in words without the value."""

    where: str
    what: str


class InvalidInput(CompileError):
    """An input that does not have the shape it must have."""

    code = "invalid_input"

    def __init__(self, name: str, problems: Sequence[CompileProblem]) -> None:
        listed = "; ".join(f"{problem.where}: {problem.what}" for problem in problems[:_MOST_NAMED])
        super().__init__(f"{len(problems)} problem(s) in {name}: {listed}")
        self.problems = list(problems)


class UnknownSchemaVersion(InvalidInput):
    """An object of a version this program does not read."""

    code = "unknown_schema_version"

    def __init__(self, name: str, *, found: str, supported: str) -> None:
        what = f"found {found!r}, this program reads {supported!r}"
        super().__init__(name, [CompileProblem("schema_version", what)])
        self.found = found
        self.supported = supported


class InvalidItem(InvalidInput):
    """One candidate that cannot be used."""

    code = "invalid_item"

    def __init__(self, item_id: str, *, field: str, what: str) -> None:
        super().__init__(f"item {item_id!r}", [CompileProblem(field, what)])
        self.item_id = item_id
        self.field = field


class MissingProvenance(InvalidInput):
    """Candidates without a source: what cannot be traced is not compiled."""

    code = "missing_provenance"

    def __init__(self, item_ids: Sequence[str], *, of: int) -> None:
        problems = [CompileProblem(item_id, "has no source_ref") for item_id in item_ids]
        super().__init__(f"{len(item_ids)} of {of} items", problems)
        self.item_ids = list(item_ids)
        self.of = of


class ItemTooLarge(InvalidInput):
    """A candidate larger than `max_item_bytes`."""

    code = "item_too_large"

    def __init__(self, item_id: str, *, found_bytes: int, most_bytes: int) -> None:
        what = f"{found_bytes:,} bytes, at most {most_bytes:,} are taken"
        super().__init__(f"item {item_id!r}", [CompileProblem("content", what)])
        self.item_id = item_id
        self.found_bytes = found_bytes
        self.most_bytes = most_bytes


class InvalidBudget(InvalidInput):
    """A token budget that leaves nothing to allocate by its own numbers."""

    code = "invalid_budget"

    def __init__(self, *, token_budget: int, response_reserve: int) -> None:
        what = f"token_budget {token_budget}, response_reserve {response_reserve}: " + (
            "neither may be negative"
            if token_budget < 0 or response_reserve < 0
            else "the reserve is larger than the budget"
        )
        super().__init__("the budget", [CompileProblem("token_budget", what)])
        self.token_budget = token_budget
        self.response_reserve = response_reserve


class DependencyCycle(InvalidInput):
    """Items that depend on each other in a ring."""

    code = "dependency_cycle"

    def __init__(self, rings: Sequence[Sequence[str]]) -> None:
        problems = [
            CompileProblem(
                " → ".join([*ring[:_MOST_NAMED], ring[0]]), f"a ring of {len(ring)} items"
            )
            for ring in rings
        ]
        super().__init__("dependencies", problems)
        self.rings = [list(ring) for ring in rings]


class OrphanToolResult(InvalidInput):
    """Tool results whose call is not among the items."""

    code = "orphan_tool_result"

    def __init__(self, orphans: Sequence[tuple[str, str]], *, calls: int) -> None:
        problems = [
            CompileProblem(
                item_id, f"answers call {call_id!r}, which is none of the {calls} calls given"
            )
            for item_id, call_id in orphans
        ]
        super().__init__("tool results", problems)
        self.orphans = list(orphans)
        self.calls = calls


class RequiredOverBudget(CompileError):
    """What may never be dropped is larger than the budget: nothing is dropped, nothing sent."""

    code = "required_over_budget"

    def __init__(
        self,
        *,
        needed_tokens: int,
        available_tokens: int,
        token_budget: int,
        response_reserve: int,
        items: Sequence[tuple[str, str, int]],
    ) -> None:
        largest = sorted(items, key=lambda one: (-one[2], one[0]))[:_MOST_NAMED]
        listed = ", ".join(f"{item_id} ({reason}) {tokens}" for item_id, reason, tokens in largest)
        super().__init__(
            f"{len(items)} items may never be dropped and need {needed_tokens} tokens; "
            f"{available_tokens} are available (budget {token_budget} less reserve "
            f"{response_reserve}), {needed_tokens - available_tokens} too few. Largest: {listed}"
        )
        self.needed_tokens = needed_tokens
        self.available_tokens = available_tokens
        self.token_budget = token_budget
        self.response_reserve = response_reserve
        self.items = list(items)  # (item id, reason code, tokens)


class RequiredWithheld(CompileError):
    """Policy withholds what may never be dropped: neither can give way, so nothing is sent."""

    code = "required_withheld"

    def __init__(self, items: Sequence[tuple[str, str, tuple[str, ...]]]) -> None:
        listed = ", ".join(
            f"{item_id} ({reason}; rules {', '.join(rules) or 'none'})"
            for item_id, reason, rules in items[:_MOST_NAMED]
        )
        super().__init__(f"{len(items)} required item(s) may not be shown: {listed}")
        self.items = list(items)  # (item id, reason code, rule ids)


class ScorerUnavailable(CompileError):
    """A scorer that cannot rate here: what it needs is not installed."""

    code = "scorer_unavailable"

    def __init__(self, scorer: str, *, extra: str, why: str) -> None:
        super().__init__(
            f"the scorer {scorer!r} needs the extra {extra!r}: {why}; "
            f"install it with: pip install 'hansard[{extra}]'"
        )
        self.scorer = scorer
        self.extra = extra
