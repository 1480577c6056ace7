"""An agent back end of one's own: events come in, one at a time, and no function spans the work.

    hansard serve &
    python examples/custom_backend.py

Its runs are told step by step. A run begins where a conversation turn begins, and ends, perhaps in
another function and another thread, where it is answered, fails or is called off.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import hansard

Event = dict[str, Any]


@dataclass
class Backend:
    """Turns a stream of events into answers; one open run for each session."""

    runs: dict[str, hansard.Run] = field(default_factory=dict)

    def handle(self, event: Event) -> None:
        getattr(self, f"on_{event['type']}")(event, self.runs.get(event["session"]))

    def on_message(self, event: Event, run: hansard.Run | None) -> None:
        self.runs[event["session"]] = hansard.start_run(
            agent_name="travel-desk",
            domain="travel",
            user_goal=event["text"],
            conversation_id=event["session"],
            user_id=event["user"],
            tags=["example"],
        )

    def on_model_answered(self, event: Event, run: hansard.Run) -> None:
        with run.activate(), run.step("chat planner-1", "model_call") as step:
            step.span.set_attributes(
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.request.model": "planner-1",
                    "gen_ai.usage.input_tokens": event["tokens"][0],
                    "gen_ai.usage.output_tokens": event["tokens"][1],
                }
            )

    def on_tool_called(self, event: Event, run: hansard.Run) -> None:
        run.record_tool_call(event["name"], event["arguments"], call_id=event["call"])

    def on_tool_answered(self, event: Event, run: hansard.Run) -> None:
        run.record_tool_result(
            event["name"], event.get("result"), call_id=event["call"], error=event.get("error")
        )

    def on_answer(self, event: Event, run: hansard.Run) -> None:
        run.end(output=event["text"])

    def on_hung_up(self, event: Event, run: hansard.Run) -> None:
        run.end(status="cancelled")


def events() -> list[Event]:
    """Two sessions, as they come in over some wire: one is answered, one is called off."""
    lisbon, oslo = {"session": "s-1", "user": "ada"}, {"session": "s-2", "user": "bo"}
    find, pay = {"name": "find_train", "call": "c1"}, {"name": "pay", "call": "c2"}
    return [
        {"type": "message", **lisbon, "text": "Book me a train to Lisbon."},
        {"type": "message", **oslo, "text": "How do I get to Oslo?"},
        {"type": "model_answered", **lisbon, "tokens": (310, 24)},
        {"type": "tool_called", **lisbon, **find, "arguments": {"to": "Lisbon"}},
        {"type": "tool_answered", **lisbon, **find, "result": ["09:10", "13:40"]},
        {"type": "tool_called", **oslo, **find, "arguments": {"to": "Oslo"}},
        {"type": "tool_called", **lisbon, **pay, "arguments": {"train": "09:10"}},
        {"type": "tool_answered", **lisbon, **pay, "error": "card was refused"},
        {"type": "hung_up", **oslo},
        {"type": "answer", **lisbon, "text": "The 09:10 has a seat, but the card was refused."},
    ]


if __name__ == "__main__":
    hansard.init(service_name="travel-desk")
    backend = Backend()
    for event in events():
        backend.handle(event)
    for session, run in backend.runs.items():
        sys.stdout.write(f"{session} {run.status}\n")
