"""An agent about nothing in particular: a model, tools, and a loop until it has nothing left to do.

    hansard serve &
    python examples/generic_agent.py                      # or with --embedded, without a server
    python examples/generic_agent.py --provider anthropic --model claude-… "Count to three."

Put functions of your own into `TOOLS`. No key is needed: the model answers from a script.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import hansard
from hansard_compiler.errors import HansardError
from hansard_compiler.providers.adapter import Adapter
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.scripted import read_script

MOST_TURNS = 10
TASK = "How many letters has the longest of: oak, sycamore, ash?"
SCRIPT = {
    "hansard_script": 1,
    "answers": [
        {
            "when": {"last_user_is": TASK, "answers_so_far": 0},
            "call": [{"name": "longest", "arguments": {"words": "oak, sycamore, ash"}}],
        },
        {
            "when": {"last_result_of": "longest"},
            "say": "Now the letters.",
            "call": [
                {"name": "count_letters", "arguments": {"word": "sycamore"}},
                {"name": "count_letters", "arguments": {"word": ""}},
            ],
        },
        {"when": {"last_result_of": "count_letters"}, "say": "Sycamore, with 8 letters."},
    ],
    "otherwise": {"say": "I have no line for this."},
}


@hansard.tool
def longest(words: str) -> str:
    """Return the longest of some words."""
    return max((word.strip() for word in words.split(",")), key=len)


@hansard.tool
def count_letters(word: str) -> int:
    """Count the letters of a word."""
    if not word:
        raise ValueError("an empty text is no word")
    return len(word)


TOOLS: Sequence[Callable[..., Any]] = (longest, count_letters)


def definition(tool: Callable[..., Any]) -> dict[str, Any]:
    """A tool as models are told of it; here all parameters are texts."""
    names = list(inspect.signature(tool).parameters)
    properties = {name: {"type": "string"} for name in names}
    return {
        "name": tool.__name__,
        "description": inspect.getdoc(tool) or "",
        "parameters": {"type": "object", "properties": properties, "required": names},
    }


def called(name: str, arguments: dict[str, Any]) -> str:
    """Run a tool; what goes wrong is for the model to know, and no end of the loop."""
    known = {tool.__name__: tool for tool in TOOLS}
    try:
        return json.dumps(known[name](**arguments))
    except Exception as error:
        return f"failed: {error!r}"


def work(task: str, adapter: Adapter, model: str) -> str:
    """Compile, ask, run what is asked for, and again."""
    conversation: list[dict[str, Any]] = [{"role": "user", "content": task}]
    previous: hansard.CompiledStep | None = None
    with hansard.start_run("generic", user_goal=task) as run:
        for number in range(1, MOST_TURNS + 1):
            with run.step(f"turn {number}"):
                previous = compiled = run.compile_step(
                    conversation,
                    model=model,
                    provider=adapter,
                    token_budget=4_000,
                    response_reserve=500,
                    tools=[definition(tool) for tool in TOOLS],
                    task_summary=task,
                    previous=previous,
                )
                said = run.call_model(compiled)
            if not said.tool_calls:
                run.end(output=said.text)
                return said.text
            conversation.append(said.message)
            for call in said.tool_calls:
                result = called(call.name, dict(call.arguments))
                conversation.append({"role": "tool", "tool_call_id": call.id, "content": result})
        run.end(status="failed", output="too many turns")
        return "That took too many turns."


def make_adapter(provider: str) -> Adapter:
    """Return the scripted model, or the adapter of a provider that is set up in the environment."""
    if provider != "scripted":
        return adapter_for(provider)
    script = read_script(json.dumps(SCRIPT).encode())
    return adapter_for("scripted", AdapterSettings(script=script))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", nargs="?", default=TASK)
    parser.add_argument("--embedded", action="store_true", help="store without a server")
    parser.add_argument("--provider", default="scripted")
    parser.add_argument("--model", default="scripted-1")
    asked = parser.parse_args()
    hansard.init(service_name="generic", embedded=asked.embedded)
    try:
        said = work(asked.task, make_adapter(asked.provider), asked.model)
    except HansardError as error:  # no key, no package, no answer: it says what to do
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{said}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
