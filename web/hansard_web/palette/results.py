"""What a query finds by name, in the order of the palette."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Annotated, Final, Literal, TypeAlias
from urllib.parse import quote, unquote_plus

import apsw

from hansard_store.bodies import Answer, Body, Description, body_of
from hansard_store.runs.saved_views import list_views
from hansard_store.search.names import find_runs_by_name, find_steps_by_name, find_values
from hansard_store.times import time_text
from hansard_web.app.addresses import conversation_href, user_href
from hansard_web.app.config import SETTINGS
from hansard_web.ui.format import agent_words, shorten, status_word
from hansard_web.ui.navigation import PLACES

Kind: TypeAlias = Literal["page", "run", "step", "user", "conversation", "view", "setting"]
MOST_CHARS: Final = 200
_MOST: Final = {
    "page": 6,
    "run": 7,
    "step": 7,
    "user": 5,
    "conversation": 5,
    "view": 5,
    "setting": 5,
}
_LABEL_CHARS: Final = 120


class FoundName(Body):
    """One thing that is called so."""

    kind: Kind
    label: str
    detail: Annotated[str, Description("what tells it from others of its name")]
    href: Annotated[str, Description("path of its page on this server")]
    at: Annotated[str | None, Description("when a run or a step began")]


class FoundNames(Answer):
    """At most a few of each kind: pages, runs, steps, users, conversations, views, settings."""

    items: list[FoundName]


def find_names(
    connection: apsw.Connection,
    query: str,
    *,
    run_id: str = "",
    values: Mapping[str, str] | None = None,
) -> list[FoundName]:
    """Return what a query finds; pages and saved views alone without one.

    `run_id`: whose steps are looked at. `values`: of settings, where a server runs with them.
    """
    words = query.strip()[:MOST_CHARS]
    found = list(islice(_pages(words), _MOST["page"] if words else None))
    if not words:
        return [*found, *islice(_views(connection, ""), _MOST["view"])]
    found += _runs(connection, words)
    found += _steps(connection, words, run_id)
    users = find_values(connection, "user", words, limit=_MOST["user"])
    found += (_found("user", one, "runs, cost and errors", user_href(one)) for one in users)
    talks = find_values(connection, "conversation", words, limit=_MOST["conversation"])
    found += (_found("conversation", one, "its runs", conversation_href(one)) for one in talks)
    found += islice(_views(connection, words), _MOST["view"])
    return [*found, *islice(_settings(words, values or {}), _MOST["setting"])]


def _pages(words: str) -> Iterator[FoundName]:
    wanted = words.lower()
    by_label = [one for one in PLACES if one.label.lower().startswith(wanted)]
    others = [
        one for one in PLACES if one not in by_label and wanted in f"{one.label} {one.hint}".lower()
    ]
    for place in (*by_label, *others):
        yield _found("page", place.label, place.hint, place.href)


def _runs(connection: apsw.Connection, words: str) -> Iterator[FoundName]:
    for one in find_runs_by_name(connection, words, limit=_MOST["run"]):
        agent = f"{shorten(one.agent, 60)} · " if one.agent and one.agent not in one.name else ""
        detail = f"{agent}{one.run_id[:8]} · {status_word(one.status)}"
        yield _found("run", agent_words(one.name), detail, f"/runs/{one.run_id}", one.started_ns)


def _steps(connection: apsw.Connection, words: str, run_id: str) -> Iterator[FoundName]:
    for one in find_steps_by_name(connection, words, run_id=run_id, limit=_MOST["step"]):
        detail = f"{one.role}{', error' if one.is_error else ''} · run {one.run_id[:8]}"
        href = f"/runs/{one.run_id}?step={one.step_id.partition('-')[2]}"
        yield _found("step", _step_words(one.name), detail, href, one.at_ns)


def _step_words(name: str) -> str:
    return name.removeprefix("execute_tool ").removeprefix("invoke_agent ").strip() or name


def _views(connection: apsw.Connection, words: str) -> Iterator[FoundName]:
    wanted = words.lower()
    for view in list_views(connection):
        if wanted in view.name.lower() or (wanted and wanted in view.query.lower()):
            detail = unquote_plus(view.query).replace("&", " ") or "all runs"
            yield _found("view", view.name, detail, f"/views/{quote(view.name, safe='')}")


def _settings(words: str, values: Mapping[str, str]) -> Iterator[FoundName]:
    wanted = words.lower().replace("-", "_").removeprefix("hansard_")
    for setting in SETTINGS:
        if wanted in setting.name or words.lower() in setting.sentence.lower():
            usual = f"default {setting.default}"
            now = values.get(setting.name)
            detail = f"{f'{now} ({usual})' if now else usual} · {setting.sentence}"
            href = f"/health#setting-{quote(setting.name)}"
            yield _found("setting", setting.name, detail, href)


def _found(kind: Kind, label: str, detail: str, href: str, at_ns: int | None = None) -> FoundName:
    return body_of(
        FoundName,
        kind=kind,
        label=shorten(label, _LABEL_CHARS),
        detail=shorten(detail, _LABEL_CHARS),
        href=href,
        at=time_text(at_ns),
    )
