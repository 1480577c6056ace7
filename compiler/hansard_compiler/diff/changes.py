"""What differs between two compile requests, change by change, and taking single ones back.

Ids of request, run and step are no change: a compile does not depend on them. Lists are compared by
the id of their elements; where an id stands twice the whole list is one change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from hansard_compiler.canonical import canonical_json
from hansard_compiler.compile.items import tool_name
from hansard_compiler.compile.models import CompilationRequest, Json, parse

ChangeKind = Literal[
    "budget", "weight", "setting", "rule", "model", "task", "time", "input", "order"
]
Presence = Literal["added", "removed", "changed"]

_PLAIN: Final[Mapping[str, ChangeKind]] = {
    "token_budget": "budget",
    "response_reserve": "budget",
    "provider": "model",
    "model": "model",
    "task_summary": "task",
    "now": "time",
}
_LISTS: Final[Mapping[str, tuple[str, ChangeKind]]] = {
    "policy_rules": ("rule", "rule"),
    "memory_records": ("memory", "input"),
    "tool_specs": ("tool", "input"),
    "context_items": ("item", "input"),
}
_NESTED: Final = ("weights", "risk", "relevance", "compression")
_SETTING: Final = "setting."
_WEIGHT: Final = "weight."
_REMOVED: Final = "removed_items"  # of the request of a replay
_LEFT_OUT: Final = "left_out."


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `left` and `right` are JSON values, None for what is not there."""

    name: str  # token_budget, weight.freshness, setting.min_score, rule.<id>, item.<id> …
    kind: ChangeKind
    presence: Presence
    left: Any
    right: Any

    @property
    def subject(self) -> str | None:
        """The id of the item, memory or tool that it is about, as receipts name it."""
        field, _, subject = self.name.partition(".")
        if self.kind != "input" or not subject:
            return None
        return f"tool:{subject}" if field == "tool" else subject


def changes_between(left: CompilationRequest, right: CompilationRequest) -> tuple[Change, ...]:
    """Return every difference: settings first, then rules, then inputs, each by name."""
    return tuple(_changes(_document(left), _document(right)))


def reverted(
    right: CompilationRequest, left: CompilationRequest, names: Collection[str]
) -> CompilationRequest:
    """Return the right request with the named changes as they were on the left.

    With all of them it compiles as the left one does. Raises InvalidInput where the mixture is no
    valid request.
    """
    return parse(CompilationRequest, _mixed(_document(right), _document(left), frozenset(names)))


def _document(request: CompilationRequest) -> Json:
    """Return a request with what its bytes leave unsaid: 0.1's compiler and scorer."""
    found = request.model_dump(mode="json")
    config = request.compile_config
    found["compile_config"]["compiler_version"] = config.compiler_version
    found["compile_config"]["relevance"]["scorer"] = config.relevance.scorer
    return found


def _changes(left: Json, right: Json) -> Iterator[Change]:
    for name, kind in _PLAIN.items():
        if left[name] != right[name]:
            yield Change(name, kind, "changed", left[name], right[name])
    yield from _config_changes(left["compile_config"], right["compile_config"])
    yield from _left_out(left.get(_REMOVED, ()), right.get(_REMOVED, ()))
    for field, (word, kind) in _LISTS.items():
        yield from _list_changes(field, word, kind, left[field], right[field])


def _left_out(left: Sequence[str], right: Sequence[str]) -> Iterator[Change]:
    """Yield what a replay leaves out: a candidate still, and so no change of the lists."""
    for item_id in sorted({*left} ^ {*right}):
        before, after = (item_id if item_id in one else None for one in (left, right))
        presence: Presence = "removed" if before is None else "added"
        yield Change(f"{_LEFT_OUT}{item_id}", "input", presence, before, after)


def _config_changes(left: Json, right: Json) -> Iterator[Change]:
    before, after = _flat(left), _flat(right)
    for name in sorted(
        before.keys() | after.keys(), key=lambda name: (not name.startswith(_WEIGHT), name)
    ):
        if not _same(before.get(name), after.get(name)):
            kind: ChangeKind = "weight" if name.startswith(_WEIGHT) else "setting"
            yield Change(name, kind, "changed", before.get(name), after.get(name))


def _flat(config: Json) -> Json:
    """Return every number of a configuration by one name: weights, and all other settings."""
    found: Json = {}
    for name, value in config.items():
        if name in _NESTED:
            prefix = _WEIGHT if name == "weights" else f"{_SETTING}{name}."
            found.update((prefix + inner, one) for inner, one in value.items())
        else:
            found[_SETTING + name] = value
    return found


def _unflat(flat: Mapping[str, Any]) -> Json:
    config: Json = {}
    for name, value in flat.items():
        path = ["weights", name.removeprefix(_WEIGHT)]
        if not name.startswith(_WEIGHT):
            path = name.removeprefix(_SETTING).split(".", 1)
        inner = config if len(path) == 1 else config.setdefault(path[0], {})
        inner[path[-1]] = value
    return config


def _list_changes(
    field: str, word: str, kind: ChangeKind, left: Sequence[Any], right: Sequence[Any]
) -> Iterator[Change]:
    before, after = _by_key(field, left), _by_key(field, right)
    if before is None or after is None:
        if not _same(left, right):
            yield Change(field, kind, "changed", left, right)
        return
    for key in sorted(before.keys() | after.keys()):
        one, other = before.get(key), after.get(key)
        if not _same(one, other):
            presence: Presence = (
                "added" if one is None else "removed" if other is None else "changed"
            )
            yield Change(f"{word}.{key}", kind, presence, one, other)
    if _common_order(before, after) != _common_order(after, before):
        yield Change(f"order.{field}", "order", "changed", list(before), list(after))


def _by_key(field: str, values: Sequence[Any]) -> dict[str, Any] | None:
    """Return the elements by id in their order; None where an id stands twice."""
    found = {tool_name(one) if field == "tool_specs" else str(one["id"]): one for one in values}
    return found if len(found) == len(values) else None


def _common_order(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return [key for key in one if key in other]


def _same(left: Any, right: Any) -> bool:
    return canonical_json(left) == canonical_json(right)


# ---- taking changes back


def _mixed(right: Json, left: Json, names: frozenset[str]) -> Json:
    mixed = dict(right)
    for name in _PLAIN:
        if name in names:
            mixed[name] = left[name]
    before, after = _flat(left["compile_config"]), _flat(right["compile_config"])
    taken = {name: value for name, value in before.items() if name in names}
    mixed["compile_config"] = _unflat({**after, **taken})
    mixed[_REMOVED] = _mixed_removed(right.get(_REMOVED, ()), left.get(_REMOVED, ()), names)
    for field, (word, _) in _LISTS.items():
        mixed[field] = _mixed_list(field, word, right[field], left[field], names)
    return mixed


def _mixed_removed(right: Sequence[str], left: Sequence[str], names: frozenset[str]) -> list[str]:
    both = dict.fromkeys((*right, *left))
    return [one for one in both if one in (left if f"{_LEFT_OUT}{one}" in names else right)]


def _mixed_list(
    field: str, word: str, right: Sequence[Any], left: Sequence[Any], names: frozenset[str]
) -> list[Any]:
    before, after = _by_key(field, left), _by_key(field, right)
    if before is None or after is None:
        return list(left if field in names else right)
    is_reordered = f"order.{field}" in names
    order = _woven(before, after) if is_reordered else _woven(after, before)
    chosen = ((before if f"{word}.{key}" in names else after).get(key) for key in order)
    return [one for one in chosen if one is not None]


def _woven(first: Iterable[str], second: Iterable[str]) -> list[str]:
    """Return all keys in the order of the first; each other one behind what it stood behind."""
    behind: dict[str | None, list[str]] = {}
    known, last = set(first), None
    for key in second:
        if key not in known:
            behind.setdefault(last, []).append(key)
        else:
            last = key
    woven = list(behind.get(None, ()))
    for key in first:
        woven += (key, *behind.get(key, ()))
    return woven
