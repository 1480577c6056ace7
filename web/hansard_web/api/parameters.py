"""The query parameters of the routes, as OpenAPI documents them."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Annotated, Final, TypeAlias

from fastapi import Depends, Query
from fastapi.dependencies.models import Dependant
from pydantic import JsonValue, WithJsonSchema
from starlette.requests import Request

from hansard_compiler.models.json_schema import AMOUNT, NOT_BLANK, TIME_OR_AGE
from hansard_store.annotations.queries import MOST_CONDITIONS
from hansard_store.errors import InvalidQueryError
from hansard_store.runs.filters import (
    ANY_KIND,
    MOST_FILTERS,
    RUN_KINDS,
    RUN_STATUSES,
    RunFilter,
)
from hansard_web.api.queries import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    Window,
    limit_of,
    run_filter_of,
    window_of,
)
from hansard_web.api.values import SCHEMA_VERSION

# Texts that are parsed here, and refused in the API's own words; their schemas state the same.
TimeText: TypeAlias = Annotated[str, WithJsonSchema(TIME_OR_AGE)]
Cursor: TypeAlias = Annotated[
    str | None,
    WithJsonSchema({"type": "string", "format": "cursor"}),
    Query(description="next_cursor of the page before"),
]
LimitText: TypeAlias = Annotated[
    str, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT})
]
TagText: TypeAlias = Annotated[str, WithJsonSchema({"type": "string", "format": "tag"})]
ScoreText: TypeAlias = Annotated[
    str,
    WithJsonSchema(
        {
            "type": "string",
            "maxLength": 256,
            "pattern": r"^[^\s\x1c-\x1f\x85:<>=][^:<>=\n]*"
            rf"(:{NOT_BLANK}.*|(>=|<=|>|<|=)[+-]?[0-9]{{1,15}}(\.[0-9]{{1,9}})?)?$",
        }
    ),
]
AttributeText: TypeAlias = Annotated[str, WithJsonSchema({"type": "string", "pattern": "^[^:]+:"})]
FEW: Final[dict[str, JsonValue]] = {"maxItems": MOST_CONDITIONS}  # tags, or scores
# Of one kind, and of all kinds together, which a schema of one parameter cannot say.
MANY: Final[dict[str, JsonValue]] = {"maxItems": MOST_FILTERS}
_LONGEST_NAME: Final = 40  # of an unknown parameter, in its refusal
_MANY_VALUES: Final = f"any of these; at most {MOST_FILTERS} filters in all"
PayloadRef: TypeAlias = Annotated[
    str, WithJsonSchema({"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"})
]
SearchText: TypeAlias = Annotated[str, WithJsonSchema({"type": "string", "format": "search"})]
AmountText: TypeAlias = Annotated[str, WithJsonSchema(AMOUNT)]


def one_of(*words: str) -> WithJsonSchema:
    """Return the schema of a text that is one of these; any other is refused in the API's words."""
    return WithJsonSchema({"type": "string", "enum": list(words)})


class UnknownSchemaError(InvalidQueryError):
    """The client was written for another version of the API."""

    code = "schema_version_unknown"

    def __init__(self, version: str) -> None:
        super().__init__(
            "schema_version",
            f"schema_version {version!r} is not known; this API speaks {SCHEMA_VERSION!r}",
        )


class UnknownParameterError(InvalidQueryError):
    """A query parameter that the route does not have; `nearest` is the one most like it."""

    code = "unknown_parameter"

    def __init__(self, name: str, known: list[str]) -> None:
        shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
        near = get_close_matches(name[:_LONGEST_NAME].lower(), known, n=1)
        nearest = near[0] if near else None
        hint = f"; did you mean {nearest!r}?" if nearest else ";"
        super().__init__(
            shown,
            f"this route has no query parameter {shown!r}{hint} known: {', '.join(known)}",
        )
        self.details = {"parameter": shown, "nearest": nearest, "known": known}


async def check_parameters(request: Request) -> None:
    """Refuse query parameters that the route of a request does not declare."""
    if not request.scope["query_string"]:
        return
    known = dict.fromkeys(_declared(request.scope["route"].dependant))
    for name in request.query_params:
        if name not in known:
            raise UnknownParameterError(name, sorted(known))


def _declared(dependant: Dependant) -> Iterator[str]:
    for parameter in dependant.query_params:
        yield parameter.alias
    for dependency in dependant.dependencies:
        yield from _declared(dependency)


def check_schema_version(
    schema_version: Annotated[
        str,
        one_of(SCHEMA_VERSION),
        Query(description="the version the client was written for; another is refused"),
    ] = SCHEMA_VERSION,
) -> None:
    """Refuse a client that says it speaks a version this API does not."""
    if schema_version != SCHEMA_VERSION:
        raise UnknownSchemaError(schema_version)


def read_limit(
    limit: Annotated[
        LimitText | None,
        Query(description=f"1 to {MAX_LIMIT}; {DEFAULT_LIMIT} unless given"),
    ] = None,
) -> int:
    """Return how many items to answer with."""
    return limit_of(limit)


Limit: TypeAlias = Annotated[int, Depends(read_limit)]


def read_run_filter(
    q: Annotated[SearchText, Query(description="words, phrases, prefix*, -word")] = "",
    kind: Annotated[
        str | None,
        one_of(*RUN_KINDS, ANY_KIND),
        Query(description="agent, other (without a step of an agent's work) or any, the default"),
    ] = None,
    status: Annotated[
        list[Annotated[str, one_of(*RUN_STATUSES)]],
        Query(description=_MANY_VALUES, json_schema_extra=MANY),
    ] = [],  # noqa: B006
    agent: Annotated[list[str], Query(description=_MANY_VALUES, json_schema_extra=MANY)] = [],  # noqa: B006
    model: Annotated[list[str], Query(description=_MANY_VALUES, json_schema_extra=MANY)] = [],  # noqa: B006
    tool: Annotated[list[str], Query(description=_MANY_VALUES, json_schema_extra=MANY)] = [],  # noqa: B006
    service: Annotated[list[str], Query(description=_MANY_VALUES, json_schema_extra=MANY)] = [],  # noqa: B006
    tag: Annotated[
        list[TagText],
        Query(description="stands on the run or a step; each of these", json_schema_extra=FEW),
    ] = [],  # noqa: B006
    score: Annotated[
        list[ScoreText],
        Query(
            description="name, name:label, name>=0.5 or another comparison; each",
            json_schema_extra=FEW,
        ),
    ] = [],  # noqa: B006
    conversation: Annotated[str | None, Query()] = None,
    group: Annotated[
        str | None,
        WithJsonSchema({"type": "string", "pattern": "^[0-9a-f]{32}$"}),
        Query(description="group_id: traces of one prompt of one session"),
    ] = None,
    user: Annotated[str | None, Query()] = None,
    error: Annotated[
        str | None,
        WithJsonSchema({"type": "string", "pattern": "^[0-9a-f]{32}$"}),
        Query(description="error_id: runs that have an error of this group"),
    ] = None,
    receipts: Annotated[
        str | None, one_of("yes", "no"), Query(description="whether context decisions are recorded")
    ] = None,
    attribute: Annotated[
        list[AttributeText],
        Query(
            description="key:value, each on some span; key:* asks for the key alone",
            json_schema_extra=MANY,
        ),
    ] = [],  # noqa: B006
    since: Annotated[
        TimeText | None, Query(description="started at or after: 24h (ago), RFC 3339 or ns")
    ] = None,
    until: Annotated[
        TimeText | None, Query(description="started before: 1h (ago), RFC 3339 or ns")
    ] = None,
    min_duration_ms: Annotated[AmountText | None, Query()] = None,
    min_cost: Annotated[AmountText | None, Query(description="US dollars")] = None,
) -> RunFilter:
    """Return the filter of a list of runs; an empty value means that it was not given."""
    return run_filter_of(locals())


def read_window(
    since: Annotated[
        TimeText | None, Query(description="started at or after: 24h (ago), RFC 3339 or ns")
    ] = None,
    until: Annotated[
        TimeText | None, Query(description="started before: 1h (ago), RFC 3339 or ns")
    ] = None,
) -> Window:
    """Return a window of time; all of it unless given."""
    return window_of(since, until)
