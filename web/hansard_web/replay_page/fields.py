"""The fields of a replay's form, made into an ordered list of changes.

Fields of what there is once (model, budget, weights, what is left out) say how it shall be: an
empty one takes its change back. Fields that add something add a change at the end.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from hansard_compiler.calls import Json
from hansard_compiler.compile.config import Weights
from hansard_web.replay_page.state import read_change
from hansard_web.ui.format import natural

TERMS: Final = tuple(Weights.model_fields)
SAMPLING: Final[Mapping[str, Callable[[str], Any]]] = {
    "temperature": float, "max_output_tokens": int, "top_p": float, "seed": int, "effort": str,
}  # fmt: skip
_GREATEST: Final = 2.0**53  # JSON says no greater numbers exactly
BUDGET: Final = ("token_budget", "response_reserve")


@dataclass(slots=True)
class Folding:
    """The list while fields are read into it."""

    changes: list[Json]
    problems: list[str] = field(default_factory=list)

    def set(self, op: str, value: Json) -> None:
        """Let the list say this once, where it said so before or at its end; {} takes it away."""
        at = [number for number, one in enumerate(self.changes) if one["op"] == op]
        if not value:
            self.changes = [one for one in self.changes if one["op"] != op]
        elif at:
            self.changes[at[-1]] = {"op": op, **value}
        else:
            self.changes.append({"op": op, **value})

    def add(self, op: str, **value: Any) -> None:
        self.changes.append({"op": op, **value})

    def number(self, name: str, text: str, kind: Callable[[str], Any] = int) -> Any:
        """Return a number as people write it (12,000); None, and a problem, for what is none."""
        plain = text.replace(",", "").strip() if kind in (int, float) else text.strip()
        if not plain:
            return None
        try:
            value = kind(plain)
        except ValueError:
            value = math.nan
        if isinstance(value, int | float) and not abs(value) < _GREATEST:
            self.problems.append(f"{name.replace('_', ' ')}: “{text[:40]}” is no number.")
            return None
        return value


def fold_fields(
    changes: Sequence[Json], typed_pairs: Iterable[tuple[str, str]]
) -> tuple[tuple[Json, ...], list[str]]:
    """Return the changes with what the fields say, and what could not be read."""
    pairs = list(typed_pairs)
    fields = dict(pairs)
    folding = Folding(list(changes))
    _once(folding, fields)
    _left_out(folding, pairs)
    _added(folding, fields)
    _moved(folding, fields)
    return tuple(folding.changes), folding.problems


def _once(folding: Folding, fields: Mapping[str, str]) -> None:
    for op, name in (("set_provider", "provider"), ("set_model", "model")):
        if name in fields:
            folding.set(op, {name: fields[name].strip()} if fields[name].strip() else {})
    if any(name in fields for name in BUDGET):
        folding.set("set_budget", _numbers(folding, fields, BUDGET, lambda _: int))
    if any(f"weight.{term}" in fields for term in TERMS):
        names = [f"weight.{term}" for term in TERMS]
        found = _numbers(folding, fields, names, lambda _: float)
        weights = {name.removeprefix("weight."): value for name, value in found.items()}
        folding.set("set_weights", {"weights": weights} if weights else {})
    if any(name in fields for name in SAMPLING):
        found = _numbers(folding, fields, tuple(SAMPLING), SAMPLING.__getitem__)
        folding.set("set_sampling", {**_unseen(folding.changes), **found})


def _unseen(changes: Sequence[Json]) -> Json:
    """Return what a change of the sampling says that the form has no field for."""
    last = next((one for one in reversed(changes) if one["op"] == "set_sampling"), {})
    return {
        name: value
        for name, value in last.items()
        if name != "op" and (name not in SAMPLING or value is None)
    }


def _numbers(
    folding: Folding,
    fields: Mapping[str, str],
    names: Sequence[str],
    kind_of: Callable[[str], Callable[[str], Any]],
) -> Json:
    found = {}
    for name in names:
        value = folding.number(name, fields.get(name, ""), kind_of(name))
        if value is not None:
            found[name] = value
    return found


def _left_out(folding: Folding, pairs: Sequence[tuple[str, str]]) -> None:
    """Let exactly those of the listed items be left out that are ticked."""
    listed = {value for name, value in pairs if name == "row"}
    ticked = [value for name, value in pairs if name == "leave_out"]
    gone = {one.get("item_id") for one in folding.changes if one["op"] == "remove_item"}
    folding.changes = [
        one
        for one in folding.changes
        if one["op"] != "remove_item"
        or one.get("item_id") not in listed
        or one.get("item_id") in ticked
    ]
    for item_id in dict.fromkeys(ticked):
        if item_id not in gone:
            folding.add("remove_item", item_id=item_id)


def _added(folding: Folding, fields: Mapping[str, str]) -> None:
    for op, name, key in (
        ("remove_source", "without_source", "source"),
        ("remove_tool", "without_tool", "name"),
    ):
        if fields.get(name):
            folding.add(op, **{key: fields[name]})
    if fields.get("without_memory"):
        is_all = fields["without_memory"] == "all:"
        folding.add("remove_memory", **({} if is_all else {"memory_id": fields["without_memory"]}))
    if fields.get("was") != content_mark(fields.get("content", "")):
        _edited(folding, fields)
    if (position := _position(fields, "remove_message")) is not None:
        folding.add("remove_message", position=position)
    if fields.get("add_content", "").strip():
        item = {"kind": fields.get("add_kind") or "file", "content": _lines(fields["add_content"])}
        if fields.get("add_id", "").strip():
            item["id"] = fields["add_id"].strip()
        folding.add("add_item", item=item)
    if fields.get("say_text", "").strip():
        role = fields.get("say_role") or "user"
        folding.add("add_message", role=role, text=_lines(fields["say_text"]))
    _rules(folding, fields)
    if fields.get("raw", "").strip():
        try:
            folding.changes.append(read_change(fields["raw"]))
        except ValueError as wrong:
            folding.problems.append(f"The change as JSON: {wrong}.")


def content_mark(text: str) -> str:
    """Return what tells content that was opened and not touched from content that was edited."""
    return hashlib.sha256(_lines(text).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _edited(folding: Folding, fields: Mapping[str, str]) -> None:
    """Note new content; of an item only the last one counts."""
    text = fields.get("content", "")
    if fields.get("edit_item"):
        content = _content(folding, text, is_json=fields.get("is_json") == "1")
        if content is not None:
            change = {"op": "edit_item", "item_id": fields["edit_item"], "content": content}
            folding.changes = [one for one in folding.changes if not _is_edit(one, change)]
            folding.changes.append(change)
    if (position := _position(fields, "edit_message")) is not None:
        folding.add("edit_message", position=position, text=_lines(text))


def _is_edit(one: Json, of: Json) -> bool:
    return (one["op"], one.get("item_id")) == (of["op"], of["item_id"])


def _position(fields: Mapping[str, str], name: str) -> int | None:
    return natural(fields.get(name, ""), digits=9)


def _rules(folding: Folding, fields: Mapping[str, str]) -> None:
    if fields.get("no_rules") == "1":
        folding.changes = [one for one in folding.changes if one["op"] != "set_policy"]
        folding.add("set_policy", rules=[])
    elif fields.get("rules", "").strip():
        found = _content(folding, fields["rules"], is_json=True, name="The rules")
        rules = found.get("rules") if isinstance(found, dict) else found
        if isinstance(rules, list):
            folding.set("set_policy", {"rules": rules})
        elif found is not None:
            folding.problems.append('The rules: expected a list, or an object with "rules".')


def _content(folding: Folding, text: str, *, is_json: bool, name: str = "The content") -> Any:
    if not is_json:
        return _lines(text)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as wrong:
        folding.problems.append(f"{name}: not JSON ({wrong}).")
        return None


def _lines(text: str) -> str:
    """Return what was typed: browsers send line ends as CR LF."""
    return text.replace("\r\n", "\n")


def _moved(folding: Folding, fields: Mapping[str, str]) -> None:
    """Take back a change, or move it: numbers are those of the list that was shown."""
    for name, by in (("drop", 0), ("up", -1), ("down", 1)):
        at = natural(fields.get(name, ""), digits=3)
        if at is None or at >= len(folding.changes):
            continue
        one = folding.changes.pop(at)
        if by:
            folding.changes.insert(max(at + by, 0), one)
