"""A small desk to compile for: items, a scripted model, a run in which both are used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hansard
from hansard import Run
from hansard.testing import Spans, capture
from hansard_compiler.providers.adapter import Adapter
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.scripted import read_script

NOW = "2026-03-04T12:00:00Z"
MODEL = "scripted-1"
SECRET = "sk-proj-" + "T9xQz7LmW2vRk4NbY8cJ1hGd5sFp3aKe6uVi0oXw"


def item(item_id: str, kind: str = "file", content: Any = None, **more: Any) -> dict[str, Any]:
    """Return a context item that came from a file."""
    return {
        "id": item_id,
        "kind": kind,
        "content": f"text of {item_id}" if content is None else content,
        "source_ref": {"source_type": "file", "uri": f"docs/{item_id}.md"},
        "created_at": NOW,
        **more,
    }


SYSTEM = item("rules", "system", "You are a clerk.")
LARGE = item("almanac", content="the tide comes and goes " * 400)
QUESTION = {"role": "user", "content": "Where is order 7?"}
ITEMS = [SYSTEM, LARGE, item("orders", content="Order 7: in the post."), QUESTION]


def scripted(**line: Any) -> Adapter:
    """Return a model that always gives this answer."""
    script = {"hansard_script": 1, "model": MODEL, "otherwise": line or {"say": "In the post."}}
    settings = AdapterSettings(script=read_script(json.dumps(script).encode()))
    return adapter_for("scripted", settings)


def options(**more: Any) -> Any:
    return {
        "model": MODEL,
        "provider": scripted(),
        "token_budget": 600,
        "response_reserve": 100,
        "now": NOW,
        **more,
    }


@contextmanager
def running(**settings: Any) -> Iterator[tuple[Spans, Run]]:
    """Record into memory, in a run."""
    with capture(**settings) as spans, hansard.start_run("clerk", "support") as run:
        yield spans, run


def attributes(spans: Spans, name: str) -> dict[str, Any]:
    return dict(spans.one(name).attributes or {})


def columns(spans: Spans) -> dict[str, dict[str, Any]]:
    """Return the decisions of the one compile, by item id."""
    told = attributes(spans, "hansard.compile")
    lists = {
        key.removeprefix("hansard.item."): value
        for key, value in told.items()
        if key.startswith("hansard.item.") and not key.endswith(".total")
    }
    ids = lists.pop("ids")
    assert {len(value) for value in lists.values()} == {len(ids)}
    return {one: {key: lists[key][at] for key in lists} for at, one in enumerate(ids)}
