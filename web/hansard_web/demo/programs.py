"""The demo's three programs, each a process of its own: python -m hansard_web.demo.programs NAME.

They print one JSON line a run, what they know of it themselves, and nothing else.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from hansard_web.demo import telemetry
from hansard_web.demo.agent import DemoAgent, DemoReport, DemoTool, ScriptedModel

# What the tools find: orders, a policy, an archive.
_WORLD: Final = json.loads(
    files("hansard_web.demo").joinpath("world.json").read_text(encoding="utf-8")
)
_ORDERS: Final[Mapping[str, Any]] = _WORLD["orders"]
_POLICY: Final[str] = _WORLD["refund_policy"]
_ARCHIVE: Final[Sequence[Mapping[str, str]]] = _WORLD["archive"]
_SLOW_SEARCH_S: Final = 1.2


# ---- support desk: two conversations, a tool that fails once, a broken prompt cache


def support_desk(model: ScriptedModel) -> Iterator[DemoReport]:
    """Answer two customers; the second hour has another clock in the instructions."""
    gateway = _PaymentGateway()
    tools = (
        DemoTool(
            "lookup_order", "Find an order by its number.", {"order": "number"}, _lookup_order
        ),
        DemoTool(
            "refund_policy", "Read the refund policy.", {}, lambda _arguments, _report: _POLICY
        ),
        DemoTool(
            "issue_refund",
            "Pay an order's price back.",
            {"order": "number", "reason": "why"},
            gateway.refund,
        ),
    )

    def desk(clock: str) -> DemoAgent:
        # A clock at the top of the prompt is a classic: each tick makes the whole prefix new.
        instructions = (
            f"You are the support desk of a small shop. It is {clock} on 22 November 2026. "
            "Be brief and kind. Look an order up before you speak about it, and read the refund "
            "policy before you promise anything."
        )
        return DemoAgent("support-desk", instructions, "gpt-4o-mini", "openai", model, tools)

    first, second = desk("14:05"), desk("15:05")
    machine: list[dict[str, Any]] = []
    for agent, text in (
        (first, "Hello, my espresso machine from order A-1042 arrived with a broken tank."),
        (first, "The tank has a crack from top to bottom, it was like that in the box."),
        (second, "Yes please, refund it."),
        (second, "How long until the money is there?"),
    ):
        machine.append({"role": "user", "content": text})
        yield agent.answer(machine, conversation_id="order-a-1042", user_id="rosa")
    shoes: list[dict[str, Any]] = []
    for text in ("Where are my shoes, order B-2077?", "Then I will wait, thank you."):
        shoes.append({"role": "user", "content": text})
        yield second.answer(shoes, conversation_id="order-b-2077", user_id="tomas")


def _lookup_order(arguments: Mapping[str, str], _report: DemoReport) -> str:
    query = {
        "db.system.name": "sqlite",
        "db.operation.name": "SELECT",
        "db.collection.name": "orders",
        "db.query.text": "SELECT * FROM orders WHERE id = ?",
    }
    with telemetry.client_span("SELECT orders", query):
        return json.dumps(_ORDERS[arguments["order"]])


class _PaymentGateway:
    """Fails the first time, as the ones in real life do."""

    def __init__(self) -> None:
        self._calls = 0

    def refund(self, arguments: Mapping[str, str], _report: DemoReport) -> str:
        self._calls += 1
        if self._calls == 1:
            raise TimeoutError("the payment gateway did not answer within 200 ms")
        return json.dumps({"refund": "R-88", "paid_eur": _ORDERS[arguments["order"]]["paid_eur"]})


# ---- research: a search that takes its time, and a second agent inside the first one's run


def research(model: ScriptedModel) -> Iterator[DemoReport]:
    """Answer two questions from the archive, facts checked by another agent."""
    checker = DemoAgent(
        "fact-checker",
        "Say whether the archive supports a claim, and quote the entry that decides.",
        "gpt-4.1",
        "openai",
        model,
        (_read_entry(),),
    )

    def call_checker(arguments: Mapping[str, str], report: DemoReport) -> str:
        return checker.answer_within(arguments["claim"], report)

    assistant = DemoAgent(
        "research-assistant",
        "You answer from the archive and name the entries you used. Have each date checked.",
        "claude-sonnet-4-5",
        "anthropic",
        model,
        (
            DemoTool("search_archive", "Search the archive.", {"query": "words"}, _search_archive),
            _read_entry(),
            DemoTool("ask_fact_checker", "Have a claim checked.", {"claim": "text"}, call_checker),
        ),
    )
    for question in (
        "Since when is there an official report of what was said in Parliament?",
        "Why can readers go on while a database with a write-ahead log is written?",
    ):
        yield assistant.answer([{"role": "user", "content": question}])


def _read_entry() -> DemoTool:
    def read(arguments: Mapping[str, str], _report: DemoReport) -> str:
        return next(e["content"] for e in _ARCHIVE if e["id"] == arguments["entry"])

    return DemoTool("read_entry", "Read one entry of the archive.", {"entry": "its id"}, read)


def _search_archive(arguments: Mapping[str, str], _report: DemoReport) -> str:
    words = set(arguments["query"].lower().split())
    retrieval = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": "archive",
        "gen_ai.retrieval.query.text": arguments["query"],
    }
    with telemetry.client_span("retrieval archive", retrieval) as span:
        if "parliament" in words:
            time.sleep(_SLOW_SEARCH_S)  # the slow span of the demo
        found = [
            {"id": e["id"], "content": e["title"], "score": len(words & _words_of(e)) / len(words)}
            for e in _ARCHIVE
            if words & _words_of(e)
        ]
        span.set_attribute("gen_ai.retrieval.documents", telemetry.to_json(found))
    return json.dumps([entry["id"] for entry in found])


def _words_of(entry: Mapping[str, str]) -> set[str]:
    return set(f"{entry['title']} {entry['content']}".lower().split())


# ---- night jobs: one that works, one whose model is down


def night_jobs(model: ScriptedModel) -> Iterator[DemoReport]:
    """Write release notes, then try to sync an inventory while the model is overloaded."""
    notes = DemoAgent(
        "release-notes",
        "Turn a list of changes into three short lines for people who do not read code.",
        "gpt-4.1",
        "openai",
        model,
    )
    changes = "Changes: searching is faster; exports keep time zones; a crash on empty runs is gone"
    yield notes.answer([{"role": "user", "content": changes}])
    sync = DemoAgent("inventory-sync", "Compare two lists.", "gpt-4o-mini", "openai", model)
    yield sync.answer([{"role": "user", "content": "Compare warehouse and shop for shelf 7"}])


PROGRAMS: Final[Mapping[str, Callable[[ScriptedModel], Iterator[DemoReport]]]] = {
    "support-desk": support_desk,
    "research": research,
    "night-jobs": night_jobs,
}


def main() -> None:
    """Run one program."""
    (name,) = sys.argv[1:]
    with telemetry.exporting():
        for report in PROGRAMS[name](ScriptedModel()):
            print(json.dumps(dataclasses.asdict(report)), flush=True)


if __name__ == "__main__":
    main()
