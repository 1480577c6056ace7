"""What a team's agents send in nine days, made with the stock SDK and its OTLP exporter."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from opentelemetry import context, trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode

from tests.journeys.processes import Serving, export, http_exporter

SECOND: Final = 1_000_000_000
DAY_S: Final = 86_400
Message = Mapping[str, Any]

SLOW_QUERY: Final = "every order of 2019 that was ever returned, without a limit"
BUDGET: Final = "The budget is 500 EUR."
LONG_RUN_ERROR: Final = "row 214 has no postcode"
CARD_ERROR: Final = "refund declined: the card has expired"


def say(role: str, *texts: str) -> Message:
    return {"role": role, "parts": [{"type": "text", "content": text} for text in texts]}


class Team:
    """A tracer whose clock is set by hand; spans are sent by `send`."""

    def __init__(self, now_ns: int | None = None) -> None:
        self._now_ns = now_ns or time.time_ns()
        self._memory = InMemorySpanExporter()
        self._clock_ns = self._now_ns
        self._providers: dict[str, TracerProvider] = {}

    def send(self, serving: Serving) -> None:
        """Send all that was recorded over OTLP/HTTP."""
        batch: list[ReadableSpan] = list(self._memory.get_finished_spans())
        for start in range(0, len(batch), 400):
            assert export(http_exporter(serving), batch[start : start + 400])
        self._memory.clear()

    def at(self, age_s: float) -> None:
        """Set the clock to a moment before now."""
        self._clock_ns = self._now_ns - int(age_s * SECOND)

    def wait(self, seconds: float) -> None:
        self._clock_ns += int(seconds * SECOND)

    @contextmanager
    def span(
        self, name: str, service: str, error: tuple[str, str] | None = None, **attributes: Any
    ) -> Iterator[Span]:
        """Record a span; attributes have dots where the keywords have two underscores."""
        started = self._tracer(service).start_span(
            name,
            start_time=self._clock_ns,
            attributes={key.replace("__", "."): value for key, value in attributes.items()},
        )
        token = context.attach(trace.set_span_in_context(started))
        try:
            yield started  # type: ignore[misc]  # the SDK's span behind the API's type
        finally:
            context.detach(token)
            if error is not None:
                started.set_status(Status(StatusCode.ERROR, error[1]))
                started.set_attribute("error.type", error[0])
            started.end(end_time=self._clock_ns)

    def _tracer(self, service: str) -> trace.Tracer:
        if service not in self._providers:
            provider = TracerProvider(
                resource=Resource({"service.name": service}), shutdown_on_exit=False
            )
            provider.add_span_processor(SimpleSpanProcessor(self._memory))
            self._providers[service] = provider
        return self._providers[service].get_tracer("team")

    @contextmanager
    def agent(
        self, agent: str, *, service: str = "", error: tuple[str, str] | None = None, **more: Any
    ) -> Iterator[Span]:
        """Record the work of an agent."""
        with self.span(
            f"invoke_agent {agent}", service or agent, error,
            gen_ai__operation__name="invoke_agent", gen_ai__agent__name=agent, **more,
        ) as span:  # fmt: skip
            yield span

    def chat(
        self,
        service: str,
        prompt: Sequence[Message],
        answer: Message,
        *,
        model: str = "gpt-4o",
        tokens: tuple[int, int] = (900, 60),
        cached: int = 0,
        seconds: float = 1.2,
        system: str = "",
        provider: str = "openai",
        **more: Any,
    ) -> None:
        """Record a model call and the time that it takes."""
        if system:
            more["gen_ai__system_instructions"] = json.dumps([{"type": "text", "content": system}])
        with self.span(
            f"chat {model}", service,
            gen_ai__operation__name="chat", gen_ai__provider__name=provider,
            gen_ai__request__model=model, gen_ai__response__model=model,
            gen_ai__input__messages=json.dumps(list(prompt)),
            gen_ai__output__messages=json.dumps([{**answer, "finish_reason": "stop"}]),
            gen_ai__usage__input_tokens=tokens[0], gen_ai__usage__output_tokens=tokens[1],
            gen_ai__usage__cache_read__input_tokens=cached, **more,
        ):  # fmt: skip
            self.wait(seconds)
        self.wait(0.05)

    def tool(
        self,
        service: str,
        tool: str,
        arguments: Mapping[str, Any],
        result: str = "ok",
        *,
        seconds: float = 0.1,
        error: tuple[str, str] | None = None,
    ) -> None:
        """Record a tool call and the time that it takes."""
        more = {} if error else {"gen_ai__tool__call__result": json.dumps(result)}
        with self.span(
            f"execute_tool {tool}", service, error,
            gen_ai__operation__name="execute_tool", gen_ai__tool__name=tool,
            gen_ai__tool__call__arguments=json.dumps(arguments), **more,
        ):  # fmt: skip
            self.wait(seconds)
        self.wait(0.05)


def work(team: Team) -> None:
    """Record nine days: support, research with hand-offs, quotes, a watcher, an import."""
    for number in range(45):
        support(team, number)
    for number in range(4):
        quote(team, number)
    research(team)
    costly(team)
    watcher(team)
    clock_in_prompt(team)
    long_import(team)


def support(team: Team, number: int) -> None:
    """A customer's question: carla's card has expired, and one search in nine takes long."""
    user = ("carla", "dennis", "emil", "fatima", "goran")[number % 5]
    fails = user == "carla" and number < 30
    team.at(number * 4 * 3600 + 1800)
    failure = ("RefundError", CARD_ERROR) if fails else None
    with team.agent(
        "support-bot", error=failure, user__id=f"{user}@example.com",
        gen_ai__conversation__id=f"ticket-{number // 2:03}",
    ):  # fmt: skip
        asked = say("user", f"Hello, this is {user}. Where is my refund for order {4000 + number}?")
        team.chat("support-bot", [asked], say("assistant", "I look it up."), tokens=(820, 25))
        team.tool("support-bot", "get_order", {"order": 4000 + number}, "paid, returned")
        slow = number % 9 == 4
        query = SLOW_QUERY if slow else f"returns of order {4000 + number}"
        team.tool(
            "support-bot", "search_orders", {"query": query}, "1 return",
            seconds=95 if slow else 0.6,
        )  # fmt: skip
        if fails or number % 3 == 0:
            team.tool("support-bot", "refund", {"order": 4000 + number}, error=failure)
        words = "The refund was declined." if fails else "The refund is on its way."
        team.chat("support-bot", [asked], say("assistant", words), tokens=(980, 40), cached=640)


def quote(team: Team, number: int) -> None:
    """The same question two days running: a smaller model and another prompt answer it badly."""
    is_bad = number < 2
    team.at((1 if is_bad else 25) * 3600 + number * 60)
    with team.agent("quote-bot", user__id="sales@example.com"):
        team.chat(
            "quote-bot", [say("user", "Quote 12 chairs, delivered to Lyon.")],
            say("assistant", "12 chairs: 0 EUR" if is_bad else "12 chairs: 948 EUR with delivery"),
            model="gpt-4o-mini" if is_bad else "gpt-4o",
            system="You quote prices. Round everything." if is_bad
            else "You quote prices. Use the price list.",
        )  # fmt: skip


def research(team: Team) -> None:
    """Three agents: the hand-off to the researcher leaves the budget out."""
    team.at(7200)
    task = say("user", "Find a laptop for the new designer. " + BUDGET)
    crew = {"service": "buying-crew"}
    with team.agent("planner", **crew, gen_ai__conversation__id="buying-7"):
        team.chat("buying-crew", [task], say("assistant", "The researcher looks for laptops."))
        with team.agent("researcher", **crew):
            asked = say("user", "List the best laptops for design work.")
            team.chat("buying-crew", [asked], say("assistant", "I search."), model="gpt-4o-mini")
            team.tool("buying-crew", "web_search", {"query": "best laptops design"}, "Model X")
            team.chat("buying-crew", [asked], say("assistant", "Model X costs 2,400 EUR."))
        with team.agent("writer", **crew):
            asked = say("user", "Write the recommendation: Model X, 2,400 EUR.")
            team.chat("buying-crew", [asked], say("assistant", "We recommend Model X."))
        team.chat("buying-crew", [task], say("assistant", "Buy Model X for 2,400 EUR."))


def costly(team: Team) -> None:
    """One call of three reads a whole archive."""
    team.at(5 * DAY_S)
    with team.agent("archivist"):
        asked = say("user", "Summarise the contracts of 2019.")
        team.chat(
            "archivist", [asked], say("assistant", "I fetch them."), model="o3", tokens=(1_100, 30)
        )
        team.tool("archivist", "fetch_contracts", {"year": 2019}, "118 contracts")
        archive = say("user", "All contracts. " + "Whereas the parties agree. " * 400)
        team.chat(
            "archivist", [asked, archive], say("assistant", "118 contracts, 3 renewed."),
            model="o3", tokens=(412_000, 900), seconds=14,
        )  # fmt: skip
        team.chat("archivist", [asked], say("assistant", "Done."), model="o3", tokens=(1_300, 20))


def watcher(team: Team) -> None:
    """An agent that asks for the same article forty times."""
    team.at(10_800)
    with team.agent("stock-watcher"):
        seen = [say("user", "Tell me when A-17 is in stock.")]
        for turn in range(40):
            words = say("assistant", f"Look {turn}: is A-17 there?")
            team.chat("stock-watcher", seen, words, tokens=(700 + 40 * turn, 12), seconds=0.8)
            seen.append(words)
            team.tool("stock-watcher", "get_stock", {"sku": "A-17"}, "0", seconds=0.2)


def clock_in_prompt(team: Team) -> None:
    """The time of day in the system prompt: the prompt cache breaks at every turn."""
    team.at(14_400)
    rules = "You sort letters. " + "Letters about invoices go to accounting. " * 180
    with team.agent("mail-sorter"):
        seen: list[Message] = []
        for turn in range(4):
            seen.append(say("user", f"Letter {turn}: " + "Dear shop, about my invoice. " * 30))
            team.chat(
                "mail-sorter", seen, say("assistant", "accounting"),
                system=f"It is 14:0{turn}. {rules}",
                tokens=(4_100 + 400 * turn, 8), cached=128 if turn else 0,
            )  # fmt: skip
            seen.append(say("assistant", "accounting"))


def long_import(team: Team) -> None:
    """A run of 900 steps with one error."""
    team.at(20_000)
    failure = ("ValueError", LONG_RUN_ERROR)
    with team.agent("importer", error=("ImportError", "1 of 300 rows failed")):
        for row in range(300):
            with team.span(f"row {row}", "importer", failure if row == 214 else None):
                team.tool("importer", "parse_row", {"row": row}, seconds=0.01)
                team.tool(
                    "importer", "store_row", {"row": row}, seconds=0.01,
                    error=failure if row == 214 else None,
                )  # fmt: skip
