"""A recording of a client against what its provider answered: one statement is one fact.

`ledger.json` beside a recording is the provider's own log: its calls in their order, and under
`untold` what the client does not tell, which must then be shown as unknown. A client that has one
span for the calls of all steps says how many such spans there are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hansard_collector.derivation.stored_span import read_step
from hansard_collector.pipeline.requests import Signal
from hansard_compiler.calls import Call, ToolCallPart
from tests.collector.ingesting import Ingesting

CLIENTS = Path(__file__).parents[2] / "fixtures" / "clients"
TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")
RESULT = "18"  # stands in what every tool of the recordings answers

_COUNTED = """
SELECT span.id FROM call JOIN span ON span.id = call.span
WHERE call.counted AND span.role = 'llm' ORDER BY span.sort_ns, span.id
"""
_STEPS = "SELECT count(*) FROM span WHERE role = 'llm' AND flags & 1 = 0"
_TOOLS = "SELECT id FROM span WHERE role = 'tool' AND flags & 1 = 0 ORDER BY sort_ns, id"
_SUMS = """
SELECT sum(tokens_input), sum(tokens_output), sum(tokens_cache_read), sum(tokens_cache_write),
  sum(tokens_reasoning), sum(model_calls), sum(status = 'error')
FROM run
"""


@dataclass(frozen=True, slots=True)
class Fact:
    what: str
    wanted: Any
    got: Any

    @property
    def is_right(self) -> bool:
        return bool(self.wanted == self.got)


def send(store: Ingesting, folder: Path) -> None:
    for path in sorted(folder.glob("*.binpb")):
        store.send_bytes(Signal(path.suffixes[-2].removeprefix(".")), path.read_bytes())


def facts(store: Ingesting, folder: Path) -> Iterator[Fact]:
    """Yield every fact of a recording that was sent."""
    ledger = json.loads((folder / "ledger.json").read_text("utf-8"))
    untold = set(ledger["untold"])
    steps = [read_step(store.db, span) for (span,) in store.all(_COUNTED)]
    calls = [step.normal.call for step in steps if step.normal.call is not None]
    one_for_all = ledger.get("spans_of_calls")  # of a client with one span for all steps' calls
    yield Fact("model calls", one_for_all or len(ledger["calls"]), len(calls))
    if "steps of model calls" not in untold:  # a library may call events of its own so
        yield Fact("steps of model calls", len(calls), store.one(_STEPS))
    pairs = zip(ledger["calls"], calls, strict=False)
    for number, (wanted, call) in enumerate(() if one_for_all else pairs):
        for fact in _of_call(wanted, call):
            is_told = fact.what not in untold
            yield Fact(f"call {number}: {fact.what}", fact.wanted if is_told else None, fact.got)
    yield from _of_tools(store, ledger["calls"], untold)
    yield from _of_runs(store, ledger["calls"], untold, told_calls=len(calls))


def _of_call(wanted: dict[str, Any], call: Call) -> Iterator[Fact]:
    failed = bool(wanted.get("failed"))
    yield Fact("model of a failure" if failed else "model", wanted["model"], call.request_model)
    yield Fact("failed", failed, call.error is not None)
    if failed:
        yield Fact("tokens of a failure", 0, call.tokens.output or 0)
        return
    for name in TOKENS:
        if wanted[name] is not None:
            yield Fact(name, wanted[name], getattr(call.tokens, name))
    said = "".join(message.text for message in call.output) or None
    parts = [part for message in call.output for part in message.parts]
    asked = [part for part in parts if isinstance(part, ToolCallPart)]
    yield Fact("text", wanted["text"], said)
    shown = [{"name": part.name, "arguments": part.arguments} for part in asked]
    yield Fact("tool asked for", wanted["tool"], shown[0] if len(shown) == 1 else shown or None)
    if "finish" in wanted:
        yield Fact("finish reason", wanted["finish"], call.finish_reason)
    yield Fact("question", True, any(message.role == "user" for message in call.input) or None)


def _of_tools(store: Ingesting, calls: list[dict[str, Any]], untold: set[str]) -> Iterator[Fact]:
    if "tool steps" in untold:
        return
    # `ran` of a call: what its tool's step tells, where that is not what the model asked for.
    wanted = [call["tool"] | call.get("ran", {}) for call in calls if call.get("tool")]
    shown = [read_step(store.db, span).normal.tool for (span,) in store.all(_TOOLS)]
    tools = [tool for tool in shown if tool is not None]
    yield Fact("tool steps", len(wanted), len(tools))
    for number, (call, tool) in enumerate(zip(wanted, tools, strict=False)):
        yield Fact(f"tool {number}: name", call["name"], tool.name)
        if "tool arguments" not in untold:  # some tell their values alone
            given = _unwrapped(tool.arguments)
            yield Fact(f"tool {number}: arguments", call["arguments"], given)
        expected = call.get("result", RESULT)
        has_result = None if tool.result is None else expected in str(tool.result)
        yield Fact(f"tool {number}: result", None if "tool result" in untold else True, has_result)


def _unwrapped(arguments: Any) -> Any:
    """Arguments of a Python function as a library that wraps it calls it."""
    if isinstance(arguments, dict) and not arguments.get("args") and "kwargs" in arguments:
        return arguments["kwargs"]
    return arguments


def _of_runs(
    store: Ingesting, calls: list[dict[str, Any]], untold: set[str], *, told_calls: int
) -> Iterator[Fact]:
    row: Any = store.one(_SUMS)
    *sums, counted, failed = row
    for name, total in zip(TOKENS, sums, strict=True):
        wanted = sum(call.get(name) or 0 for call in calls)
        if wanted:
            yield Fact(f"all runs: {name}", 0 if name in untold else wanted, total or 0)
    yield Fact("all runs: model calls", told_calls, counted)
    if "failed runs" not in untold:
        yield Fact("failed runs", sum(bool(call.get("failed")) for call in calls), failed)
