"""The changes of `hansard replay`, as options."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from hansard_compiler.calls import Json
from hansard_compiler.errors import ConfigError
from hansard_web.policy.service import read_file

_SET: Final = ("model", "provider", "temperature", "top_p", "max_output_tokens", "seed", "effort")
_NUMBERS: Final = {"temperature": float, "top_p": float, "max_output_tokens": int, "seed": int}
_OPTIONS: Final = (
    click.option("--set", "sets", multiple=True, metavar="NAME=VALUE",
                 help=f"{', '.join(_SET)}; several times."),
    click.option("--budget", type=int, help="Tokens to compile for."),
    click.option("--reserve", type=int, help="Tokens of it that stay free for the answer."),
    click.option("--weights", multiple=True, metavar="TERM=WEIGHT",
                 help="Weight of a score's term: relevance, freshness, trust …"),
    click.option("--rules", multiple=True, metavar="FILE", help="Policy in place of the compile's: "
                 "files of rules, or shipped:NAME."),
    click.option("--remove", multiple=True, metavar="ITEM", help="Leave out an item."),
    click.option("--remove-source", multiple=True, metavar="SOURCE",
                 help="Leave out all items of a source: file, docs/a.md, 'file docs/a.md'."),
    click.option("--remove-memory", multiple=True, metavar="ID",
                 help="Leave out a memory; `all` for all of them."),
    click.option("--remove-tool", multiple=True, metavar="NAME", help="Do not offer a tool."),
    click.option("--edit", multiple=True, metavar="ITEM=TEXT", help="Give an item other content."),
    click.option("--message", multiple=True, metavar="N=TEXT",
                 help="Give message N, from 0, other words."),
    click.option("--say", multiple=True, metavar="TEXT", help="Add a message of the user."),
    click.option("--change", multiple=True, metavar="JSON",
                 help='Any change as JSON, in this order: \'{"op": "remove_item", …}\'.'),
)  # fmt: skip


def change_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each change."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def changes_from(told: Mapping[str, Any]) -> list[Json]:
    """Return the changes that the options name, in the order of the list."""
    changes = _sets(told["sets"])
    budget = {"token_budget": told["budget"], "response_reserve": told["reserve"]}
    known = {name: value for name, value in budget.items() if value is not None}
    if known:
        changes.append({"op": "set_budget", **known})
    if told["weights"]:
        weights = dict(_pair(one, "--weights") for one in told["weights"])
        numbers = {name: _number(name, value, float) for name, value in weights.items()}
        changes.append({"op": "set_weights", "weights": numbers})
    if told["rules"]:
        changes.append({"op": "set_policy", "rules": _rules(told["rules"])})
    for name, key in (
        ("remove", "item_id"), ("remove_source", "source"), ("remove_memory", "memory_id"),
        ("remove_tool", "name"),
    ):  # fmt: skip
        op = "remove_item" if name == "remove" else name
        changes += [{"op": op, key: None if one == "all" else one} for one in told[name]]
    for one in told["edit"]:
        item_id, content = _pair(one, "--edit")
        changes.append({"op": "edit_item", "item_id": item_id, "content": content})
    for one in told["message"]:
        number, words = _pair(one, "--message")
        position = _number("--message", number, int)
        changes.append({"op": "edit_message", "position": position, "text": words})
    changes += [{"op": "add_message", "role": "user", "text": one} for one in told["say"]]
    return [*changes, *(_json(one) for one in told["change"])]


def _sets(given: Sequence[str]) -> list[Json]:
    changes: list[Json] = []
    for one in given:
        name, value = _pair(one, "--set")
        if name not in _SET:
            raise ConfigError(f"--set {name}: there are {', '.join(_SET)}")
        if name in ("model", "provider"):
            changes.append({"op": f"set_{name}", name: value})
        else:
            number = _number(name, value, _NUMBERS.get(name, str))
            changes.append({"op": "set_sampling", name: number})
    return changes


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError(f"{option} {text!r}: expected NAME=VALUE")
    return name, value


def _number(name: str, text: str, kind: Callable[[str], Any]) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise ConfigError(f"{name}: {text!r} is no number") from None


def _rules(files: Sequence[str]) -> list[Json]:
    """Return the rules of files, as they stand there."""
    documents = [read_file(Path(name)).document for name in files]
    return [rule for document in documents for rule in document.get("rules", [])]


def _json(text: str) -> Json:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--change is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ConfigError("--change: expected a JSON object")
    return found
