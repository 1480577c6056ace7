"""The reference of the JSON API, `docs/api/`, out of what the application says of itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from fastapi import FastAPI

from tests.docs.api_errors import ANY, COMMON, Listed, errors_of
from tests.docs.api_examples import BODIES, LONG_ID, OTHER_PATHS, PATHS, QUERIES
from tests.docs.api_shapes import (
    Json,
    cell,
    closure,
    example_of,
    fields_table,
    meaning,
    refs_of,
    shape_name,
    type_of,
)
from tests.web.test_scopes import CHANGES, OPEN_READS

COMMAND: Final = "make reference"
NOTE: Final = f"<!-- Written by `{COMMAND}` from the routes. Do not edit. -->\n"
TITLES: Final = {
    "runs": "Runs",
    "steps": "Steps",
    "search": "Search and SQL",
    "usage": "Usage",
    "receipts": "Receipts and compiles",
    "diff": "Comparing",
    "replay": "Replay",
    "approvals": "Approvals",
    "events": "Audit log",
    "tasks": "Tasks for review",
    "heartbeat": "Heartbeat and diagnostics",
    "reports": "Status reports",
    "evaluations": "Evaluations",
    "memory": "Memory",
    "policy": "Policy",
    "transcripts": "Transcripts",
    "sidecar": "Sidecar",
    "payloads": "Payloads",
    "export": "Export",
    "health": "Health and ledger",
}
_SHARED: Final = "shapes"


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path, as OpenAPI has it."""

    method: str
    path: str
    told: Json

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def tag(self) -> str:
        return str(self.told["tags"][0])

    @property
    def scope(self) -> str:
        if self.path in OPEN_READS:
            return "none"
        return CHANGES.get(self.name, "read")

    @property
    def purpose(self) -> str:
        return str(self.told.get("description") or self.told["summary"]).strip()

    @property
    def summary(self) -> str:
        return self.purpose.partition("\n\n")[0]

    @property
    def body(self) -> Json | None:
        content: Json = self.told.get("requestBody", {}).get("content", {})
        return next((one.get("schema", {}) for one in content.values()), None)

    @property
    def body_type(self) -> str:
        return str(next(iter(self.told["requestBody"]["content"])))

    def parameters(self) -> list[Json]:
        return [one for one in self.told.get("parameters", ()) if one["name"] != "schema_version"]


@dataclass(frozen=True)
class Reference:
    """The pages of the reference, by file name."""

    openapi: Json

    @cached_property
    def routes(self) -> list[Route]:
        found = [
            Route(method.upper(), path, told)
            for path, methods in self.openapi["paths"].items()
            for method, told in methods.items()
        ]
        order = list(TITLES)
        return sorted(found, key=lambda one: order.index(one.tag) if one.tag in order else 99)

    @cached_property
    def tags(self) -> list[str]:
        return list(dict.fromkeys(route.tag for route in self.routes))

    @cached_property
    def schemas(self) -> Json:
        found: Json = self.openapi["components"]["schemas"]
        return found

    @cached_property
    def _homes(self) -> dict[str, str]:
        """Which page a shape stands on: that of its tag, or of all where several use it."""
        homes: dict[str, str] = {}
        for tag in self.tags:
            named = {key for one in self.routes if one.tag == tag for key in _shapes_of(one)}
            for key in closure(self.schemas, named):
                homes[key] = tag if homes.get(key, tag) == tag else _SHARED
        return homes

    def pages(self) -> dict[str, str]:
        """Return the text of every page."""
        made = {f"{tag}.md": self._tag_page(tag) for tag in self.tags}
        return {"README.md": self._first_page(), f"{_SHARED}.md": self._shared_page(), **made}

    def example(self, route: Route) -> tuple[str, Any]:
        """Return the address and the body of a route's example; None: it has no JSON body."""
        values = {**PATHS, **OTHER_PATHS.get(route.path, {})}
        path = route.path
        for one in route.told.get("parameters", ()):
            if one["in"] == "path":
                path = path.replace(f"{{{one['name']}}}", values.get(one["name"], LONG_ID))
        query = QUERIES.get(route.path, "") if route.method == "GET" else ""
        address = f"{path}?{query}" if query else path
        if route.body is None or route.body_type != "application/json":
            return address, None
        return address, BODIES.get(route.name) or example_of(route.body, self.schemas)

    # ---- pages

    def _first_page(self) -> str:
        rows = [
            f"| [`{one.name}`]({one.tag}.md#{_anchor(one.name)}) "
            f"| {cell(one.summary)} | {one.scope} |"
            for one in self.routes
        ]
        listed = [f"[{_title(tag)}]({tag}.md)" for tag in self.tags]
        return _page(
            "# API reference",
            _INTRODUCTION,
            f"By subject: {', '.join(listed)}. Shapes of several of them: [{_SHARED}](shapes.md).",
            "## Every route",
            ["| route | purpose | scope |", "|---|---|---|", *rows],
            "## Errors",
            _ERRORS,
            _errors_table([*COMMON, *errors_of(ANY)]),
        )

    def _tag_page(self, tag: str) -> str:
        parts: list[str | list[str]] = [f"# {_title(tag)}", "[All routes](README.md)"]
        for route in self.routes:
            if route.tag == tag:
                parts += self._route(route)
        errors = errors_of(tag)
        if errors:
            parts += ["## Errors of these routes", "Beside [those of all](README.md#errors):"]
            parts.append(_errors_table(errors))
        return _page(*parts, *self._shapes(tag))

    def _shared_page(self) -> str:
        return _page("# Shapes that several subjects use", "[All routes](README.md)",
                     *self._shapes(_SHARED))  # fmt: skip

    def _route(self, route: Route) -> list[str | list[str]]:
        parts: list[str | list[str]] = [f"## {route.name}", route.purpose]
        parts.append(f"Scope: {_scope(route.scope)}")
        if rows := [self._parameter(one, route.tag) for one in route.parameters()]:
            parts.append(["| parameter | in | type | |", "|---|---|---|---|", *rows])
        if route.body is not None:
            parts += self._body(route)
        answers = [self._answer(*one, tag=route.tag) for one in route.told["responses"].items()]
        errors = "errors [of any route](README.md#errors)"
        if errors_of(route.tag):
            errors += " and [of these](#errors-of-these-routes)"
        parts.append([*(line for line in answers if line), f"- {errors}"])
        return [*parts, self._curl(route)]

    def _parameter(self, one: Json, tag: str) -> str:
        is_needed = one.get("required", False) and one["in"] != "path"
        said = meaning(one["schema"], is_needed=is_needed, description=one.get("description", ""))
        kind = cell(type_of(one["schema"], self._link(tag)).replace(" or null", ""))
        return f"| `{one['name']}` | {one['in']} | {kind} | {said} |"

    def _body(self, route: Route) -> list[str | list[str]]:
        schema = route.body or {}
        if route.body_type != "application/json":
            return [f"Body: the bytes, as `{route.body_type}`."]
        [key] = refs_of({"$ref": schema["$ref"]}) if "$ref" in schema else [None]
        whole = self.schemas[key] if key else schema
        said = cell(whole.get("description", ""))
        table = fields_table(whole, self._link(route.tag), is_asked=True)
        return [f"Body: {said}" if said else "Body:", table]

    def _answer(self, status: str, told: Json, *, tag: str) -> str:
        if status.endswith("XX"):
            return ""  # all errors have one shape, told on the first page
        content: Json = told.get("content", {})
        schema = content.get("application/json", {}).get("schema")
        if schema:
            kind = type_of({k: v for k, v in schema.items() if k != "type"}, self._link(tag))
        else:
            kind = ", ".join(f"`{one}`" for one in content) or "the bytes"
        words = told.get("description", "")
        words = "" if words == "Successful Response" else f". {cell(words)}"
        return f"- `{status}`: {kind}{words}"

    def _curl(self, route: Route) -> list[str]:
        address, body = self.example(route)
        method = "" if route.method == "GET" or body is not None else f"-X {route.method} "
        if route.method == "PUT" and body is not None:
            method = "-X PUT "
        data = ""
        if body is not None:
            data = "--json '" + json.dumps(body, ensure_ascii=False) + "' "
        elif route.body is not None:
            data = "--data-binary @file "
        return ["```sh", f'curl -sS {method}{data}"$H{address}"', "```"]

    def _shapes(self, home: str) -> list[str | list[str]]:
        keys = sorted((key for key, at in self._homes.items() if at == home), key=shape_name)
        keys = [key for key in keys if key not in _ERROR_SHAPES]
        parts: list[str | list[str]] = ["## Shapes"] if keys else []
        asked = {key for route in self.routes for key in refs_of(route.body)}
        for key in keys:
            schema = self.schemas[key]
            parts.append(f"### {shape_name(key)}")
            if said := schema.get("description", "").strip():
                parts.append(said)
            is_asked = key in closure(self.schemas, asked)
            parts.append(fields_table(schema, self._link(home), is_asked=is_asked))
        return [part for part in parts if part]

    def _link(self, page: str) -> Any:
        def link(key: str) -> str:
            home = self._homes[key]
            at = "" if home == page else f"{home}.md"
            return f"[{shape_name(key)}]({at}#{shape_name(key).lower()})"

        return link


_ERROR_SHAPES: Final = ("Error", "ErrorDetail")
_INTRODUCTION: Final = """\
The JSON API of `hansard serve`, on the port of OTLP over HTTP, and on a Unix socket where
`--socket` names one. `/v1/openapi.json` says the same to programs. [The sidecar](../sidecar.md) is
a guided way through the routes that an agent needs.

```sh
H=http://127.0.0.1:4318
```

Where the server has tokens, send one: `-H "Authorization: Bearer $TOKEN"`. Each route needs a
scope: `read`, `ingest`, `decide`, or `admin`, which holds all of them. What answers an agent with
content (compiles, model calls) needs `read` beside its own.

Ids are hex digits; where one of a run or a step is asked for, a unique beginning of 8 or more does.
Times are RFC 3339. Lists come in pages: send `next_cursor` of one as `cursor` of the next; null
ends them. Every answer has `schema_version`; a client that sends the one it was written for
(`?schema_version=1`) is refused by a server that speaks another. A field of a body that is not
known is refused, with its place. Ids in the examples are made up."""
_ERRORS: Final = """\
An error is `{"schema_version", "error": {"code", "message", "details"}}`. Codes stay, messages may
change. What may be sent again as it is comes with `Retry-After`. These can be met on any route; a
page of routes lists what else they answer."""


def reference_of(app: FastAPI) -> Reference:
    """Return the reference of an application."""
    return Reference(json.loads(json.dumps(app.openapi())))


def _shapes_of(route: Route) -> set[str]:
    answers = [
        told for status, told in route.told["responses"].items() if not status.endswith("XX")
    ]
    return {
        *refs_of(route.told.get("requestBody")),
        *refs_of(answers),
        *refs_of(route.parameters()),
    }


def _errors_table(errors: Sequence[Listed]) -> list[str]:
    rows = [f"| {one.status} | `{one.code}` | {cell(one.words)} |" for one in sorted(errors)]
    return ["| status | code | |", "|---|---|---|", *rows]


def _scope(scope: str) -> str:
    return "none, it is open." if scope == "none" else f"`{scope}`"


def _title(tag: str) -> str:
    return TITLES.get(tag, tag.capitalize())


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    kept = "".join(one for one in heading.lower() if one.isalnum() or one in " _-")
    return kept.replace(" ", "-")


def _page(*parts: str | list[str]) -> str:
    blocks = ["\n".join(part) if isinstance(part, list) else part for part in parts]
    return NOTE + "\n" + "\n\n".join(block for block in blocks if block) + "\n"
