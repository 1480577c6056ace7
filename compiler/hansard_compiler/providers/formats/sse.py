"""Server-sent events of a whole response (HTML standard, section 9.2), and what they add up to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hansard_compiler.calls import Json
from hansard_compiler.providers.formats.fields import Body, integer, text

# Only these end a line. `splitlines` would also cut at U+2028 and others inside a JSON text.
_LINE_END = re.compile(r"\r\n|\n|\r")


class ServerSentEvent(NamedTuple):
    """One event; `name` is empty where the stream gives none."""

    name: str
    data: str


def read_events(body: bytes) -> Iterator[ServerSentEvent]:
    """Yield the events of a body in order.

    An event that was cut off before its empty line is left out, as a browser does. Bytes that are
    no UTF-8 become U+FFFD: the exact bytes are stored elsewhere.
    """
    name, data = "", list[str]()
    lines = _LINE_END.split(body.decode("utf-8", "replace").removeprefix("\ufeff"))
    for line in lines[:-1]:  # what follows the last line end is no whole line
        if not line:
            if data:
                yield ServerSentEvent(name, "\n".join(data))
            name, data = "", []
            continue
        key, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if key == "event":
            name = value
        elif key == "data":
            data.append(value)


def events_of(body: bytes) -> list[Json]:
    """Return the JSON of every complete event that carries an object, in order.

    What follows the last empty line was cut off and is left out, as are `[DONE]` and pings without
    data. ValueError where an event's data is not JSON.
    """
    read = (_read(event.data) for event in read_events(body))
    return [event for event in read if event is not None]


def _read(data: str) -> Json | None:
    if data.startswith("[DONE]"):
        return None
    try:
        event = json.loads(data)
    except RecursionError:
        raise ValueError("an event nested too deeply") from None
    return event if isinstance(event, dict) else None


def event_bytes(event: Json) -> bytes:
    """Return an event as it is in a stream."""
    name = f"event: {event['type']}\n" if isinstance(event.get("type"), str) else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


# What an event adds to an answer, in one form for all APIs, to be shown while it arrives: see
# `registry.deltas_of`.


def text_delta(kind: str, delta: object) -> Iterator[Json]:
    found = text(delta)
    if found is not None:
        yield {"type": kind, "text": found}


def call_delta(index: object, *, id: object, name: object, arguments: object) -> Iterator[Json]:
    found = {"call_id": text(id), "name": text(name), "arguments": text(arguments) or ""}
    if any(found.values()):
        yield {"type": "tool_call", "index": integer(index) or 0, **found}


@dataclass(frozen=True, slots=True)
class Streamed:
    """A response put together, in the form of one that was not streamed."""

    body: Json  # what had come of it, where the end is missing
    is_finished: bool  # the provider said that nothing more comes
    error: Body | None = None  # what an event reported of a failure

    @property
    def whole(self) -> Json | None:
        """The response; None where its end is missing or an event reported an error."""
        return self.body if self.is_finished and self.error is None else None
