"""What can be asked in a query string: parameters of the routes, as OpenAPI tells them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from hansard_store.errors import BadQueryError
from hansard_store.run_filters import RunFilter
from hansard_web.api.asked import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    Window,
    limit_of,
    run_filter_of,
    window_of,
)
from hansard_web.api.values import SCHEMA_VERSION


class UnknownSchemaError(BadQueryError):
    """The client was written for another version of the API."""

    code = "schema_version_unknown"

    def __init__(self, wanted: str) -> None:
        super().__init__(
            "schema_version",
            f"schema_version {wanted!r} is not known; this API speaks {SCHEMA_VERSION!r}",
        )


def check_schema_version(
    schema_version: Annotated[
        str, Query(description="the version the client was written for; another is refused")
    ] = SCHEMA_VERSION,
) -> None:
    """Refuse a client that says it speaks a version this API does not."""
    if schema_version != SCHEMA_VERSION:
        raise UnknownSchemaError(schema_version)


def read_limit(
    limit: Annotated[
        str | None,
        Query(description=f"1 to {MAX_LIMIT}; {DEFAULT_LIMIT} unless given"),
    ] = None,
) -> int:
    """Return how many items to answer with."""
    return limit_of(limit)


def read_run_filter(
    q: Annotated[str, Query(description="words, phrases, prefix*, -word")] = "",
    status: Annotated[list[str], Query(description="any of these")] = [],  # noqa: B006
    agent: Annotated[list[str], Query()] = [],  # noqa: B006
    model: Annotated[list[str], Query()] = [],  # noqa: B006
    tool: Annotated[list[str], Query()] = [],  # noqa: B006
    service: Annotated[list[str], Query()] = [],  # noqa: B006
    tag: Annotated[list[str], Query(description="stands on the run or a step; each of these")] = [],  # noqa: B006
    score: Annotated[
        list[str], Query(description="name, name:label, name>=0.5 or another comparison; each")
    ] = [],  # noqa: B006
    conversation: Annotated[str | None, Query()] = None,
    user: Annotated[str | None, Query()] = None,
    attribute: Annotated[
        list[str], Query(description="key:value, each on some span; key:* asks for the key alone")
    ] = [],  # noqa: B006
    since: Annotated[str | None, Query(description="started at or after: RFC 3339 or ns")] = None,
    until: Annotated[str | None, Query(description="started before: RFC 3339 or ns")] = None,
    min_duration_ms: Annotated[str | None, Query()] = None,
    min_cost: Annotated[str | None, Query(description="US dollars")] = None,
) -> RunFilter:
    """Return the filter of a list of runs; an empty value means that it was not given."""
    return run_filter_of(
        q=q,
        status=status,
        agent=agent,
        model=model,
        tool=tool,
        service=service,
        tag=tag,
        score=score,
        conversation=conversation,
        user=user,
        attribute=attribute,
        since=since,
        until=until,
        min_duration_ms=min_duration_ms,
        min_cost=min_cost,
    )


def read_window(
    since: Annotated[str | None, Query(description="started at or after: RFC 3339 or ns")] = None,
    until: Annotated[str | None, Query(description="started before: RFC 3339 or ns")] = None,
) -> Window:
    """Return a window of time; all of it unless given."""
    return window_of(since, until)
