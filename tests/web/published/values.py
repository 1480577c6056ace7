"""Values that a published schema allows, and requests that a published operation does.

The part of JSON Schema that pydantic and FastAPI write; a keyword that is not known here raises, so
that nothing is left out of what a request must obey.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from jsonschema import Draft202012Validator

Json = dict[str, Any]
_PREFIX: Final = "#/components/schemas/"
# No halves of characters: the document says that bodies are I-JSON.
_TEXTS: Final = st.characters(exclude_categories=["Cs"])
_SAID: Final = {"title", "description", "default", "examples", "discriminator", "$defs"}
_OTHERS: Final = 2  # properties and items beside those that must be there
_DEEP: Final = 6
_NUMBERS: Final = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
_KNOWN: Final[dict[str, set[str]]] = {
    "string": {"minLength", "maxLength", "pattern", "format", "contentMediaType"},
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "boolean": set(),
    "null": set(),
    "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"},
    "object": {
        "properties", "required", "additionalProperties", "propertyNames", "maxProperties",
        "minProperties", "patternProperties",
    },
}  # fmt: skip

_DAYS: Final = st.dates(date(1971, 1, 1), date(2261, 12, 31))
_PRINTABLE: Final = st.characters(
    exclude_categories=["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"]
)
# Every format that the document may name; one that is not here raises.
_FORMATS: Final[dict[str, SearchStrategy[str]]] = {
    "date": _DAYS.map(date.isoformat),
    "date-time": st.builds(
        lambda day, at, zone: f"{day.isoformat()}T{at.isoformat()}{zone}",
        _DAYS,
        st.times(),
        st.sampled_from(["Z", "z", "+05:30", "-23:59", "+14:00"]),
    ),
    "cursor": st.nothing(),  # only an answer has one
    "printable": st.text(_PRINTABLE, min_size=1, max_size=20),
    "search": st.from_regex("[a-z]{1,8}( -[a-z]{1,8}| [a-z]{3,8}\\*)?", fullmatch=True),
    "run-filters": st.from_regex(
        "((status=(ok|error)|agent=[a-z]{1,8}|since=[1-9]h|min_cost=[0-9])"
        "(&(tool=[a-z]{1,8}|tag=[a-z]{1,8}|receipts=yes|q=[a-z]{1,8})){0,2})?",
        fullmatch=True,
    ),
    "rule-set": st.just("shipped:support-agent"),
    "sql": st.sampled_from(["SELECT run_id, name FROM runs", "SELECT 1", "select '\u2028' as x"]),
    "tag": st.from_regex("[0-9A-Za-z_][0-9A-Za-z_.:/+-]{0,63}", fullmatch=True),
}

ANY_JSON: Final[SearchStrategy[Any]] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(_TEXTS, max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(_TEXTS, max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


class Values:
    """Strategies for the schemas of one OpenAPI document."""

    def __init__(self, document: Json) -> None:
        self._schemas: Json = document["components"]["schemas"]

    def of(self, schema: Json, *, depth: int = 0) -> SearchStrategy[Any]:
        """Return values that a schema allows; raises KeyError for a keyword not known here."""
        if "$ref" in schema:
            name = schema["$ref"].removeprefix(_PREFIX)
            return self.of(self._schemas[name], depth=depth)
        if "format" in schema and "type" not in schema:
            return _FORMATS[schema["format"]]
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        if "not" in schema:
            return self._valid({k: v for k, v in schema.items() if k != "not"}, schema, depth)
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                base = {k: v for k, v in schema.items() if k not in _SAID | {choice}}
                found = [self._merged(base, one) if base else one for one in schema[choice]]
                made = st.one_of([self.of(one, depth=depth) for one in found])
                return made.filter(self._checks(schema).is_valid) if base else made
        if "type" not in schema:
            unknown = set(schema) - _SAID
            assert not unknown, f"keywords without a type: {unknown}"
            return ANY_JSON
        kind = schema["type"]
        unknown = set(schema) - _SAID - {"type"} - _KNOWN[kind]
        assert not unknown, f"keywords that the generator does not know: {unknown}"
        makers: dict[str, Callable[[Json, int], SearchStrategy[Any]]] = {
            "string": self._string,
            "integer": self._integer,
            "number": self._number,
            "boolean": lambda _, __: st.booleans(),
            "null": lambda _, __: st.none(),
            "array": self._array,
            "object": self._object,
        }
        return makers[kind](schema, depth)

    def _valid(self, drawn: Json, schema: Json, depth: int) -> SearchStrategy[Any]:
        return self.of(drawn, depth=depth).filter(self._checks(schema).is_valid)

    def _checks(self, schema: Json) -> Draft202012Validator:
        return Draft202012Validator({**schema, "components": {"schemas": self._schemas}})

    def _merged(self, base: Json, branch: Json) -> Json:
        """Return a schema of what both allow; where one property has two, the narrower goes on."""
        if "$ref" in base:
            base = self._schemas[base["$ref"].removeprefix(_PREFIX)]
        merged = {**base, **branch}
        if "required" in base or "required" in branch:
            merged["required"] = [*base.get("required", ()), *branch.get("required", ())]
        if "properties" in base:
            narrower = branch.get("properties", {})
            merged["properties"] = {
                name: self._merged(one, narrower[name]) if name in narrower else one
                for name, one in base["properties"].items()
            }
        return _of_its_type(merged)

    def _string(self, schema: Json, _: int) -> SearchStrategy[str]:
        least, most = schema.get("minLength", 0), schema.get("maxLength")
        if (known := schema.get("format")) is not None:
            fits = re.compile(schema.get("pattern", "")).search
            return _FORMATS[known].filter(lambda text: fits(text) is not None)
        if "pattern" in schema:
            made = st.from_regex(schema["pattern"], fullmatch=True, alphabet=_TEXTS)
            return made.filter(lambda text: least <= len(text) <= (most or len(text)))
        longest = min(least + 12, most) if most is not None else least + 12
        return st.text(_TEXTS, min_size=least, max_size=longest)

    def _integer(self, schema: Json, _: int) -> SearchStrategy[int]:
        least, most = _bounds(schema, 1)
        return st.integers(
            None if least is None else int(least), None if most is None else int(most)
        )

    def _number(self, schema: Json, _: int) -> SearchStrategy[float | int]:
        least, most = _bounds(schema, 0)
        floats = st.floats(
            least,
            most,
            exclude_min="exclusiveMinimum" in schema,
            exclude_max="exclusiveMaximum" in schema,
            allow_nan=False,
            allow_infinity=False,
        )
        return floats

    def _array(self, schema: Json, depth: int) -> SearchStrategy[list[Any]]:
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", least + _OTHERS), least + _OTHERS)
        if "prefixItems" in schema:
            return st.tuples(*(self.of(one, depth=depth + 1) for one in schema["prefixItems"])).map(
                list
            )
        if depth > _DEEP and least == 0:
            return st.just([])
        made = self.of(schema.get("items", {}), depth=depth + 1)
        unique = repr if schema.get("uniqueItems") else None
        return st.lists(made, min_size=least, max_size=most, unique_by=unique)

    def _object(self, schema: Json, depth: int) -> SearchStrategy[Json]:
        required = set(schema.get("required", ()))
        named = {
            name: self.of(one, depth=depth + 1)
            for name, one in schema.get("properties", {}).items()
            if name in required or depth <= _DEEP
        }
        needed = {name: named[name] for name in named if name in required}
        others = {name: named[name] for name in named if name not in required}
        fixed = st.fixed_dictionaries(needed, optional=others)
        if "patternProperties" in schema:
            [(pattern, value)] = schema["patternProperties"].items()
            key = self.of({"type": "string", "pattern": pattern}, depth=depth + 1)
            return st.dictionaries(key, self.of(value, depth=depth + 1), max_size=_OTHERS)
        more = schema.get("additionalProperties", False if named else {})
        if more is False or named:
            return fixed
        keys = self.of({"type": "string", **schema.get("propertyNames", {})}, depth=depth + 1)
        values = self.of({} if more is True else more, depth=depth + 1)
        return st.dictionaries(
            keys,
            values,
            min_size=schema.get("minProperties", 0),
            max_size=min(_OTHERS, schema.get("maxProperties", _OTHERS)),
        )


def _of_its_type(schema: Json) -> Json:
    """Leave out what concerns values of other types, which it does not hold for."""
    if "type" not in schema:
        return schema
    others = set().union(*_KNOWN.values()) - _KNOWN[schema["type"]]
    return {key: value for key, value in schema.items() if key not in others}


def _bounds(schema: Json, step: int) -> tuple[float | None, float | None]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        least = (int(schema["exclusiveMinimum"]) if step else schema["exclusiveMinimum"]) + step
    if "exclusiveMaximum" in schema:
        most = (int(schema["exclusiveMaximum"]) if step else schema["exclusiveMaximum"]) - step
    return least, most
