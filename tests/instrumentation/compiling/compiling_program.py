"""A program that compiles and calls; run by a journey.

python -m tests.instrumentation.compiling.compiling_program COLLECTOR PROVIDER DATA
"""

from __future__ import annotations

import sys

import hansard
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.transport.vendor_sdk import Connection
from tests.instrumentation.compiling.desk import ITEMS, NOW, item

LONG = "The sea is calm tonight, the tide is full. " * 50_000  # 2 MB
MODELS = {"openai": "gpt-6-luna", "anthropic": "claude-haiku-5-5"}


def turn(name: str, address: str) -> None:
    """One run: a compile, a call that is streamed, one that is not."""
    base = address + ("" if name == "anthropic" else "/v1")
    adapter = adapter_for(name, AdapterSettings(Connection(api_key="k", base_url=base)))
    with hansard.start_run(name) as run, run.step("answer"):
        compiled = run.compile_step(
            [*ITEMS, item("poem", content=LONG)],
            model=MODELS[name],
            provider=adapter,
            token_budget=2_000_000,
            policy=[{"id": "no-orders", "effect": "deny", "conditions": {"item.id": "orders"}}],
            now=NOW,
        )
        run.call_model(compiled, max_output_tokens=50)
        run.call_model(compiled, max_output_tokens=50, stream=True)


def main(collector: str, address: str, data: str) -> None:
    hansard.init(endpoint=collector, protocol="http/protobuf", data=data, service_name="desk")
    for name in MODELS:
        turn(name, address)


if __name__ == "__main__":
    main(*sys.argv[1:])
