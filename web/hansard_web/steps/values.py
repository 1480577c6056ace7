"""The Input/Output and Attributes tabs of a step: what was sent, as read and as it came."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from hansard_collector.derivation.stored_span import StepReading
from hansard_store.steps.queries import StepSkeleton
from hansard_web.media.recorded import media_in
from hansard_web.ui.format import plural
from hansard_web.ui.json_tree import JsonNode, json_tree, parsed
from hansard_web.ui.messages import Block, value_block, without_media

_PAYLOAD: Final = re.compile(r"sha256:[0-9a-f]{64}")
_FILTERABLE_CHARS = 200
_LONG_VALUE = 160
_SHOWN_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class ValueSection:
    """A named part of the Input/Output tab."""

    title: str
    block: Block
    note: str = ""


def io_sections(step: StepSkeleton, reading: StepReading) -> tuple[ValueSection, ...]:
    """Return what went into a step and what came out, as far as reported."""
    return tuple(_sections(step, reading))


def _sections(step: StepSkeleton, reading: StepReading) -> Iterator[ValueSection]:
    normal = reading.normal
    sources = normal.sources
    if normal.tool is not None:
        yield from _section(step, "Arguments", normal.tool.arguments, part="arguments")
        yield from _section(step, "Result", normal.tool.result, part="result")
        yield from _section(step, "Description", normal.tool.description, part="description")
    yield from _section(step, "Query", normal.query, part="query")
    if normal.call is None or normal.input is not None:
        yield from _section(
            step, "Input", normal.input, part="input", note=sources.get("input", "")
        )
        yield from _section(
            step, "Output", normal.output, part="output", note=sources.get("output", "")
        )
    if normal.documents:
        documents = [
            {"id": one.id, "score": one.score, "content": one.content, **one.metadata}
            for one in normal.documents
        ]
        yield from _section(step, plural(len(documents), "document"), documents, part="documents")
    if normal.call is not None:
        parameters = dict(normal.call.parameters)
        yield from _section(step, "Parameters", parameters or None, part="parameters")
        tools = list(normal.call.tools)
        yield from _section(
            step, plural(len(tools), "tool definition"), tools or None, part="tools"
        )
    yield from _section(step, "Prompt template", dict(normal.prompt) or None, part="prompt")
    yield from _section(step, "Metadata", dict(normal.metadata) or None, part="metadata")
    yield from _section(step, "Tags", list(normal.tags) or None, part="tags")
    yield from _section(
        step, "Evaluations", [dict(one) for one in normal.evaluations] or None, part="evaluations"
    )


def _section(
    step: StepSkeleton, title: str, value: Any, *, part: str, note: str = ""
) -> Iterator[ValueSection]:
    if value is not None and value != "":
        block = value_block(
            value,
            rest=f"/steps/{step.step_id}/io/{part}",
            media=f"/v1/steps/{step.step_id}/media/{part}",
        )
        yield ValueSection(title, block, note)


def io_value(reading: StepReading, part: str) -> Any:
    """Return a part of the Input/Output tab whole; None for what is not there."""
    normal = reading.normal
    tool = normal.tool
    found: dict[str, Any] = {
        "arguments": tool.arguments if tool else None,
        "result": tool.result if tool else None,
        "description": tool.description if tool else None,
        "query": normal.query,
        "input": normal.input,
        "output": normal.output,
        "parameters": dict(normal.call.parameters) if normal.call else None,
        "tools": list(normal.call.tools) if normal.call else None,
        "metadata": dict(normal.metadata),
        "documents": [
            {"id": one.id, "score": one.score, "content": one.content, **one.metadata}
            for one in normal.documents
        ],
        "prompt": dict(normal.prompt),
        "tags": list(normal.tags),
        "evaluations": [dict(one) for one in normal.evaluations],
    }
    return found.get(part)


@dataclass(frozen=True, slots=True)
class AttributeRow:
    key: str
    text: str
    tree: JsonNode | None  # of arrays, objects and texts that hold JSON
    characters: int
    payload_href: str | None
    filter_href: str | None
    read_as: str  # what the dialect made of it: `tokens.input`


@dataclass(frozen=True, slots=True)
class AttributeGroup:
    title: str
    rows: tuple[AttributeRow, ...]
    total: int


@dataclass(frozen=True, slots=True)
class AttributesTab:
    groups: tuple[AttributeGroup, ...]
    find: str
    dropped: int


def attributes_tab(reading: StepReading, *, find: str) -> AttributesTab:
    """Return what was sent, key by key, as far as it matches what is looked for."""
    view = reading.view
    read_as: dict[str, str] = {}
    call_sources = reading.normal.call.sources if reading.normal.call else {}
    for field, attribute in {**reading.normal.sources, **call_sources}.items():
        read_as.setdefault(attribute, field)
    scope = {"name": view.scope_name, "version": view.scope_version}
    groups = [
        _group("Attributes", view.attributes, find, read_as, can_filter=True),
        _group("Resource", view.resource, find, {}, can_filter=True),
        _group(
            "Scope", {key: one for key, one in scope.items() if one}, find, {}, can_filter=False
        ),
    ]
    return AttributesTab(
        groups=tuple(group for group in groups if group.total),
        find=find,
        dropped=view.dropped_attributes_count,
    )


def _group(
    title: str,
    attributes: Mapping[str, Any],
    find: str,
    read_as: Mapping[str, str],
    *,
    can_filter: bool,
) -> AttributeGroup:
    needle = find.lower()
    rows = [
        _attribute(key, value, read_as.get(key, ""), can_filter=can_filter)
        for key, value in sorted(attributes.items())
        if not needle or needle in key.lower() or needle in _plain(value).lower()
    ]
    return AttributeGroup(title, tuple(rows), len(attributes))


def _attribute(key: str, value: Any, read_as: str, *, can_filter: bool) -> AttributeRow:
    found = parsed(value)
    characters = len(_plain(value))
    found, media = media_in(found)
    text = _plain(found if media and not isinstance(value, str) else value)
    text = without_media(text, media)
    is_tree = isinstance(found, Mapping | list | tuple)
    is_short = len(text) <= _LONG_VALUE
    scalar = not isinstance(value, Mapping | list | tuple | bytes)
    can_filter = can_filter and scalar and 0 < len(text) <= _FILTERABLE_CHARS and ":" not in key
    return AttributeRow(
        key=key,
        text=text[:_SHOWN_CHARS],
        tree=json_tree(found) if is_tree and not is_short else None,
        characters=characters,
        payload_href=f"/v1/payloads/{text}" if _PAYLOAD.fullmatch(text) else None,
        filter_href="/?" + urlencode({"attribute": f"{key}:{text}"}) if can_filter else None,
        read_as=read_as,
    )


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"{len(value):,} bytes: {value[:64].hex()}{'…' if len(value) > 64 else ''}"
    return json.dumps(value, ensure_ascii=False, default=str)
