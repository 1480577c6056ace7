"""Policy rules as data: what a rule is, and how a rule set is read from plain values.

A rule has eight fields (id, name, description, applies_to, effect, conditions, priority, metadata).
`applies_to` names values of the seven dimensions; `conditions` tests anything else. Reading is
strict: an unknown key, dimension, operator or effect refuses the whole set, because half a policy
is no policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from hansard_compiler.calls import Json
from hansard_compiler.canonical import stable_hash
from hansard_compiler.policy.approvers import ANYBODY, Approvers, parse_approvers
from hansard_compiler.policy.conditions import ALWAYS, ConditionGroup, parse_condition
from hansard_compiler.policy.errors import PolicyRuleError
from hansard_compiler.policy.facts import Action
from hansard_compiler.policy.masks import WHOLE, Mask, parse_mask

SCHEMA_VERSION = 1


class Effect(StrEnum):
    """What a rule does; listed from the most restrictive to the least."""

    DENY = "deny"
    REQUIRE_APPROVAL = "require_approval"
    REDACT = "redact"
    REQUIRE_RECEIPT = "require_receipt"
    ALLOW = "allow"

    @property
    def rank(self) -> int:
        """0 for the most restrictive."""
        return _RANKS[self]


_RANKS = {effect: rank for rank, effect in enumerate(Effect)}


ACTIONS: tuple[Action, ...] = ("see", "do")  # an item in the prompt, a call of a tool
DIMENSIONS = (
    "agent", "task_type", "provider", "sensitivity", "tool_class", "environment", "scope",
)  # fmt: skip
_MOST_PRIORITY = 2**31 - 1
_SENSITIVITIES = ("public", "internal", "restricted", "secret")
_KEYS = {
    "id", "name", "description", "applies_to", "effect", "conditions", "priority", "metadata",
}  # fmt: skip
_MAX_RULES = 10_000


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a set; `applies_to` holds patterns per dimension, of which one must fit."""

    id: str
    effect: Effect
    rule_set: str = ""
    version: str = ""
    name: str = ""
    description: str = ""
    action: str | None = None  # "see", "do", or both
    applies_to: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    conditions: ConditionGroup = ALWAYS
    priority: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    approvers: Approvers = ANYBODY  # of a rule that demands approval
    mask: Mask = WHOLE  # what a redacting rule takes out; everything unless said
    source: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)  # as given


@dataclass(frozen=True, slots=True)
class RuleSet:
    """A versioned list of rules and what happens where none of them fits."""

    name: str
    version: str
    rules: tuple[Rule, ...]
    defaults: Mapping[str, Effect] = field(default_factory=dict)  # by action
    hash: str = ""  # sha256 of the canonical form of what was read


def fits(patterns: Sequence[str], values: Sequence[str]) -> bool:
    """Return whether a value fits a pattern; `*` matches any text, all else itself."""
    for value in values:
        if value in patterns:
            return True
        for pattern in patterns:
            if "*" in pattern and fnmatchcase(value, pattern.replace("[", "[[]")):
                return True
    return False


def parse_rule_set(value: Any, *, where: str = "rules") -> RuleSet:
    """Read a rule set: `{"schema_version": 1, "name", "version", "defaults", "rules"}`.

    Raises PolicyRuleError, which says where and what was expected.
    """
    known = {"schema_version", "name", "version", "description", "defaults", "rules"}
    fields = _mapping(value, where, known)
    if fields.get("schema_version") != SCHEMA_VERSION:
        found = fields.get("schema_version")
        raise PolicyRuleError(f"{where}.schema_version", f"expected 1, found {found!r}")
    name, version = (_text(fields, key, where, needed=True) for key in ("name", "version"))
    rules = fields.get("rules")
    if not isinstance(rules, list):
        found = type(rules).__name__
        raise PolicyRuleError(f"{where}.rules", f"expected a list, found {found}")
    parsed = parse_rules(rules, rule_set=name, version=version, where=f"{where}.rules")
    defaults = _defaults(fields.get("defaults", {}), f"{where}.defaults")
    return RuleSet(name, version, parsed, defaults, stable_hash(value).hex())


def parse_rules(
    values: Sequence[Any], *, rule_set: str = "", version: str = "", where: str = "rules"
) -> tuple[Rule, ...]:
    """Read rules without a file around them, as a compile request carries them."""
    if len(values) > _MAX_RULES:
        raise PolicyRuleError(where, f"{len(values)} rules; at most {_MAX_RULES}")
    rules = tuple(
        _rule(value, f"{where}[{index}]", rule_set, version) for index, value in enumerate(values)
    )
    seen: set[str] = set()
    for index, rule in enumerate(rules):
        if rule.id in seen:
            raise PolicyRuleError(f"{where}[{index}].id", f"{rule.id!r} is used twice")
        seen.add(rule.id)
    return rules


def _rule(value: Any, where: str, rule_set: str, version: str) -> Rule:
    fields = _mapping(value, where, _KEYS)
    priority = fields.get("priority", 0)
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise PolicyRuleError(f"{where}.priority", f"expected a whole number, found {priority!r}")
    if abs(priority) > _MOST_PRIORITY:
        raise PolicyRuleError(f"{where}.priority", f"at most {_MOST_PRIORITY}, or as much below 0")
    metadata = _mapping(fields.get("metadata", {}), f"{where}.metadata", None)
    action, applies_to = _applies_to(fields.get("applies_to", {}), f"{where}.applies_to")
    effect = _effect(fields.get("effect"), f"{where}.effect", tuple(Effect))
    return Rule(
        id=_text(fields, "id", where, needed=True),
        effect=effect,
        rule_set=rule_set,
        version=str(metadata.get("version", version)),
        name=_text(fields, "name", where),
        description=_text(fields, "description", where),
        action=action,
        applies_to=applies_to,
        conditions=parse_condition(fields.get("conditions", {}), f"{where}.conditions"),
        priority=priority,
        metadata=metadata,
        approvers=parse_approvers(
            metadata, f"{where}.metadata", asks=effect is Effect.REQUIRE_APPROVAL
        ),
        mask=parse_mask(metadata.get("mask"), f"{where}.metadata.mask"),
        source=fields,
    )


def _applies_to(value: Any, where: str) -> tuple[str | None, dict[str, tuple[str, ...]]]:
    parts = _mapping(value, where, {"action", *DIMENSIONS})
    action = parts.get("action")
    if action is not None and not (isinstance(action, str) and action in ACTIONS):
        raise PolicyRuleError(f"{where}.action", f"expected 'see' or 'do', found {action!r}")
    patterns = {key: _patterns(parts[key], f"{where}.{key}") for key in DIMENSIONS if key in parts}
    for one in patterns.get("sensitivity", ()):
        if not fits([one], _SENSITIVITIES):
            raise PolicyRuleError(
                f"{where}.sensitivity", f"expected one of {_SENSITIVITIES}, found {one!r}"
            )
    return action, patterns


def _patterns(value: Any, where: str) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(one, str) and one for one in values):
        raise PolicyRuleError(where, f"expected a text or a list of texts, found {value!r}")
    return tuple(values)


def _defaults(value: Any, where: str) -> dict[str, Effect]:
    usable = (Effect.ALLOW, Effect.DENY, Effect.REQUIRE_APPROVAL)
    fields = _mapping(value, where, set(ACTIONS))
    return {key: _effect(one, f"{where}.{key}", usable) for key, one in fields.items()}


def _effect(value: Any, where: str, usable: Sequence[Effect]) -> Effect:
    if not isinstance(value, str) or value not in {effect.value for effect in usable}:
        raise PolicyRuleError(where, f"expected one of {[str(e) for e in usable]}, found {value!r}")
    return Effect(value)


def _mapping(value: Any, where: str, known: set[str] | None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise PolicyRuleError(where, f"expected a mapping, found {type(value).__name__}")
    unknown = sorted(set(value) - known) if known is not None else []
    if unknown:
        raise PolicyRuleError(
            f"{where}.{unknown[0]}", f"no such key; there are {sorted(known or ())}"
        )
    return value


def _text(fields: Mapping[str, Any], key: str, where: str, *, needed: bool = False) -> str:
    value = fields.get(key, "")
    if not isinstance(value, str) or (needed and not value):
        raise PolicyRuleError(f"{where}.{key}", f"expected a text, found {value!r}")
    return value


def rule_json(rule: Rule) -> Json:
    """Return what identifies a rule in a record."""
    return {
        "rule_id": rule.id,
        "rule_set": rule.rule_set,
        "version": rule.version,
        "effect": str(rule.effect),
        "priority": rule.priority,
    }
