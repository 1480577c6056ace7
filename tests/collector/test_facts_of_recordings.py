"""Recordings of agents and frameworks, from bytes to rows, against what the provider answered.

`calls.json` beside each recording is the provider's own log: one entry a call, null where the
library does not tell. A library that names one model only names it as the asked one here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hansard_collector.dialects.engine.normalisation import MessageCache, normalise
from hansard_collector.pipeline.requests import Signal
from hansard_compiler.calls import Call, ToolCallPart
from tests.collector.dialects.recorded import views_of
from tests.collector.ingesting import Ingesting

RECORDINGS = Path(__file__).parent.parent / "fixtures" / "recordings"
FOLDERS = sorted(folder for folder in RECORDINGS.iterdir() if folder.is_dir())

COUNTED = """
SELECT span.span_id FROM call JOIN span ON span.id = call.span
WHERE call.counted AND span.role = 'llm' ORDER BY span.sort_ns
"""
TOTALS = "SELECT sum(tokens_input), sum(tokens_output), sum(tokens_cache_read) FROM run"
TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")


def _send(ingesting: Ingesting, folder: Path) -> None:
    for path in sorted(folder.glob("*.binpb")):
        ingesting.send_bytes(Signal(path.suffixes[-2].removeprefix(".")), path.read_bytes())


def _answered(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "calls.json").read_text("utf-8"))
    return found


def _told(call: Call) -> dict[str, Any]:
    """What is shown of a call, in the shape of an entry of calls.json."""
    text = "".join(message.text for message in call.output) or None
    asked = [part for m in call.output for part in m.parts if isinstance(part, ToolCallPart)]
    return {
        "request_model": call.request_model,
        "text": text,
        "tool_calls": [{"name": part.name, "args": part.arguments} for part in asked],
        "tokens": {name: getattr(call.tokens, name) for name in TOKENS},
        "failed": call.error is not None,
    }


def _calls(ingesting: Ingesting, folder: Path) -> list[Call]:
    views = {view.span_id: view for view in views_of(folder)}
    cache = MessageCache()
    normal = [normalise(views[span_id], cache) for (span_id,) in ingesting.all(COUNTED)]
    return [one.call for one in normal if one.call is not None]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_each_call_of_a_recording_is_counted_once_and_told_as_it_was(
    ingesting: Ingesting, folder: Path
) -> None:
    _send(ingesting, folder)

    assert [_told(call) for call in _calls(ingesting, folder)] == _answered(folder)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_totals_of_a_recording_are_the_sums_of_its_calls(
    ingesting: Ingesting, folder: Path
) -> None:
    _send(ingesting, folder)

    told = [call["tokens"] for call in _answered(folder)]
    wanted = [sum(tokens[name] or 0 for tokens in told) for name in TOKENS[:3]]
    embedded = ingesting.one(
        "SELECT coalesce(sum(tokens_input), 0) FROM span WHERE role='embedding'"
    )
    assert [total or 0 for total in ingesting.one(TOTALS)] == [wanted[0] + embedded, *wanted[1:]]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_tool_call_of_a_recording_counts_once_as_asked_for_and_as_ran(
    ingesting: Ingesting, folder: Path
) -> None:
    _send(ingesting, folder)

    shown = [normalise(view, MessageCache()).tool for view in views_of(folder)]
    runs = [tool for tool in shown if tool is not None]
    assert runs
    assert all(run.name for run in runs)
    # AutoGen tells neither arguments nor results.
    assert all((run.arguments is None) == (run.result is None) for run in runs)
    steps = ingesting.one("SELECT count(*) FROM span WHERE role = 'tool' AND NOT flags & 1")
    assert ingesting.one("SELECT sum(tool_calls) FROM run") == steps
