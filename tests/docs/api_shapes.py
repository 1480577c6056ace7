"""Schemas of OpenAPI in words: types, tables of fields, and which shape needs which."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]
Link: TypeAlias = Callable[[str], str]
_PREFIX: Final = "#/components/schemas/"
_HIDDEN: Final = "schema_version"  # told once, on the first page
MOST_WORDS: Final = 12  # of an enumeration; more are counted


def shape_name(key: str) -> str:
    """Return the name people read; OpenAPI puts the module before one that stands twice."""
    return key.rpartition("__")[2]


def refs_of(schema: Any) -> Iterator[str]:
    """Yield the keys of the shapes that a schema names itself."""
    if isinstance(schema, dict):
        found = schema.get("$ref", "")
        if found.startswith(_PREFIX):
            yield found.removeprefix(_PREFIX)
        for value in schema.values():
            yield from refs_of(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from refs_of(value)


def closure(schemas: Json, keys: set[str]) -> set[str]:
    """Return the shapes and all that they are made of."""
    done: set[str] = set()
    todo = set(keys)
    while todo:
        key = todo.pop()
        done.add(key)
        todo |= set(refs_of(schemas[key])) - done
    return done


def type_of(schema: Json, link: Link) -> str:
    """Return a type in a few words, shapes as links."""
    if "$ref" in schema:
        return link(schema["$ref"].removeprefix(_PREFIX))
    if "const" in schema:
        return f"`{_word(schema['const'])}`"
    if "enum" in schema:
        words = [f"`{_word(one)}`" for one in schema["enum"]]
        more = f" and {len(words) - MOST_WORDS} more" if len(words) > MOST_WORDS else ""
        return ", ".join(words[:MOST_WORDS]) + more
    for name in ("anyOf", "oneOf"):
        if name in schema:
            return " or ".join(dict.fromkeys(type_of(one, link) for one in schema[name]))
    match schema.get("type"):
        case "array":
            return f"list of {type_of(schema.get('items', {}), link)}"
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            inner = type_of(schema["additionalProperties"], link)
            return "object" if inner == "any" else f"object of {inner}"
        case str(name):
            return name
    return "any"


def _word(value: Any) -> str:
    return value if isinstance(value, str) else str(value).lower()


def fields_table(schema: Json, link: Link, *, is_asked: bool) -> list[str]:
    """Return the rows of a table of fields; what must be given says so."""
    required = schema.get("required", ()) if is_asked else ()
    rows = [
        f"| `{name}` | {cell(type_of(one, link))} | {meaning(one, is_needed=name in required)} |"
        for name, one in schema.get("properties", {}).items()
        if name != _HIDDEN
    ]
    return ["| field | type | |", "|---|---|---|", *rows] if rows else []


def meaning(schema: Json, *, is_needed: bool, description: str = "") -> str:
    """Return what a field or parameter says of itself: needed, default, bounds, words."""
    parts = ["**needed**"] if is_needed else []
    said = description or schema.get("description", "")
    if said:
        parts.append(cell(said))
    default = schema.get("default")
    if not is_needed and default not in (None, "", [], {}):
        parts.append(f"default `{_word(default)}`")
    return "; ".join(parts)


def cell(text: str) -> str:
    """Return text that stays in its cell."""
    return " ".join(text.split()).replace("|", "\\|")


def example_of(schema: Json, schemas: Json) -> Any:
    """Return the smallest value that a schema takes, for routes without a written example."""
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].removeprefix(_PREFIX)], schemas)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for name in ("anyOf", "oneOf"):
        if name in schema:
            return example_of(schema[name][0], schemas)
    match schema.get("type"):
        case "object":
            needed = schema.get("required", ())
            return {name: example_of(schema["properties"][name], schemas) for name in needed}
        case "array":
            return [example_of(schema.get("items", {}), schemas)] * schema.get("minItems", 0)
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
    return "…"
