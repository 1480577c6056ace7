"""Reads server-sent events from the bytes of a whole stream."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hansard_compiler.calls import Json


def events_of(body: bytes) -> list[Json]:
    """Return the JSON of every complete event that carries an object, in order.

    What follows the last empty line was cut off and is left out, as are `[DONE]` and pings without
    data. ValueError where an event's data is not JSON.
    """
    return [event for event in map(_read, _data_of(body)) if event is not None]


def _data_of(body: bytes) -> Iterator[str]:
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    # Only these three end a line: a JSON text may hold U+2028 and its like.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    data: list[str] = []
    for line in lines[:-1]:
        if not line:
            if data:
                yield "\n".join(data)
            data = []
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))


def _read(data: str) -> Json | None:
    if data.startswith("[DONE]"):
        return None
    try:
        event = json.loads(data)
    except RecursionError:
        raise ValueError("an event nested too deeply") from None
    return event if isinstance(event, dict) else None


def event_bytes(event: Json) -> bytes:
    """Return an event as it stands in a stream."""
    name = f"event: {event['type']}\n" if isinstance(event.get("type"), str) else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
