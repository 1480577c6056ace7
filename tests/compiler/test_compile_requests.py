"""From context items to the bytes of a provider: compiled, rendered, accepted, sent as rendered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hansard_compiler.compile.engine import compile_context
from hansard_compiler.providers.adapter import Adapter, request_bytes
from hansard_compiler.providers.base import from_payload
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.transport.vendor_sdk import Connection
from tests.compiler.compiling import item, ports, request
from tests.compiler.provider_schemas import assert_fits
from tests.compiler.render_inputs import PATHS
from tests.instrumentation.clients.provider import Provider, providing

TOOL = {
    "name": "get",
    "description": "Get an order.",
    "parameters": {"type": "object", "properties": {"k": {"type": "integer"}}},
}
CALL = {"type": "tool_call", "id": "c1", "name": "get", "arguments": {"k": 7}}
ANSWER = {"type": "tool_result", "id": "c1", "content": {"state": "in the post"}}
ITEMS: list[Any] = [
    item("rules", "system", "You are a clerk."),
    item("orders", content="Order 7 left on Monday."),
    item("almanac", "file", content="tides come and go " * 2_000),
    item("ask", "user_msg", "Where is order 7?"),
    item("call", "assistant_msg", {"role": "assistant", "parts": [CALL]}),
    item("answer", "tool_result", {"role": "tool", "parts": [ANSWER]}),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with providing() as provider:
        yield provider


def adapter_of(server: Provider, name: str) -> Adapter:
    base = server.address + ("" if name == "anthropic" else "/v1")
    connection = Connection(api_key="k", base_url=base, max_retries=0, timeout_s=5)
    return adapter_for(name, AdapterSettings(connection, preflight="off"))


@pytest.mark.covers("CP-15", "TS-11")
@pytest.mark.parametrize("name", PATHS)
def test_the_render_pass_makes_the_request_that_is_sent(server: Provider, name: str) -> None:
    adapter = adapter_of(server, name)
    made = request(ITEMS, budget=300, tool_specs=[TOOL], task_summary="Find order 7.")

    rendered = compile_context(made, ports(renderer=adapter.renderer(model="model-1"))).payload
    neutral = compile_context(made, ports()).payload
    adapter.call(from_payload(neutral, model="model-1"))
    adapter.close()

    assert_fits(PATHS[name], rendered)
    sent = server.received[-1]
    assert (sent.path, sent.body) == (PATHS[name], request_bytes(rendered))
    assert b"Order 7 left on Monday." in sent.body
    assert b"in the post" in sent.body
    assert b"tides come and go " * 3 not in sent.body
