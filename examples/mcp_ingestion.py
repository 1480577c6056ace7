"""Context from an MCP server: resources, tools and a prompt of it go into a compile.

    hansard serve &
    python examples/mcp_ingestion.py

Needs `pip install 'hansard[mcp]'`, and no key: the model answers from a script. The server is this
same file, started with `--server` and spoken with over stdin and stdout; any other will do. Roots
say what the workspace is: the server also offers a file outside of it, which is refused.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resources import FileResource

import hansard
from hansard.workspace import workspace
from hansard_compiler.mcp_context import WORKSPACE_RULE, prompt_asset, resource_items, tool_specs
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.scripted import read_script

DESK = Path(__file__).resolve().parent / "desk"
OUTSIDE = Path(__file__).resolve()
MODEL = "scripted-1"
SCRIPT = {
    "hansard_script": 1,
    "model": MODEL,
    "answers": [
        {
            "when": {"answers_so_far": 0},
            "call": [{"name": "desk__find_order", "arguments": {"number": 7}}],
        },
        {"when": {"last_result_of": "desk__find_order"}, "say": "Order 7 is in the post."},
    ],
}


# ---- a small MCP server


def make_server() -> MCPServer:
    """Return a server that offers two files of the desk, one that is none of its business, …"""
    server = MCPServer("desk")
    for path in (DESK / "orders.md", DESK / "almanac.md", OUTSIDE):
        server.add_resource(FileResource(uri=path.as_uri(), name=path.name, path=path))

    @server.tool()
    def find_order(number: int) -> str:
        """Look an order up."""
        return {7: "in the post"}.get(number, "unknown")

    @server.prompt(title="Answer a customer")
    def answer(question: str) -> str:
        """How the desk answers."""
        return f"Answer in one sentence, and look orders up first: {question}"

    return server


# ---- an agent that takes its context from it


async def offered(client: Client, question: str) -> dict[str, Any]:
    """Return what the server offers, as what a compile takes."""
    now = datetime.now(UTC).isoformat()
    inside = workspace([{"uri": DESK.as_uri(), "name": "desk"}])
    items = []
    for listed in plain(await client.list_resources())["resources"]:
        refused = inside.refusal(listed["uri"])
        read = None if refused else plain(await client.read_resource(listed["uri"]))
        items += resource_items("desk", listed, read, now=now, workspace=inside)
    (prompt,) = plain(await client.list_prompts())["prompts"]
    given = {"question": question}
    got = plain(await client.get_prompt(prompt["name"], given))
    asset = prompt_asset("desk", prompt, got, values=given)
    sys.stdout.write(f"prompt asset {asset.name}, {asset.digest[:19]}\n")
    tools = tool_specs("desk", plain(await client.list_tools())["tools"])
    return {"items": [*items, *asset.items(now=now)], "tools": tools}


def plain(result: Any) -> dict[str, Any]:
    """Return a result as the protocol's JSON."""
    found: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


async def answer(question: str) -> str:
    """Compile from the server, ask, call its tools, and again until the model says something."""
    program = StdioServerParameters(command=sys.executable, args=[__file__, "--server"])
    # The client of `mcp` makes spans of its own: in here they are steps of the run.
    with hansard.start_run("desk", "support", question) as run:
        async with Client(program) as client:
            text = await converse(client, run, question)
        run.end(output=text)
    return text


async def converse(client: Client, run: hansard.Run, question: str) -> str:
    adapter = adapter_for("scripted", AdapterSettings(script=read_script(_bytes(SCRIPT))))
    context = await offered(client, question)
    called = {tool.name: tool for tool in context["tools"]}
    conversation: list[Any] = []
    while True:
        with run.step("turn"):
            compiled = run.compile_step(
                [*context["items"], *conversation],
                model=MODEL,
                provider=adapter,
                token_budget=900,
                response_reserve=200,
                tools=[tool.spec for tool in called.values()],
                policy=[WORKSPACE_RULE],
                task_summary=question,
            )
            said = run.call_model(compiled)
        if not said.tool_calls:
            _tell(compiled, context["items"])
            return said.text
        conversation.append(said.message)
        for call in said.tool_calls:
            result = await client.call_tool(called[call.name].original, call.arguments)
            text = plain(result)["content"][0]["text"]
            conversation.append({"role": "tool", "tool_call_id": call.id, "content": text})


def _tell(compiled: hansard.CompiledStep, items: list[Any]) -> None:
    for item in items:
        why = compiled.why(item.id)
        name = item.source_ref.title or item.id
        sys.stdout.write(f"{name}: {why.receipt.decision}, {why.receipt.reason_code}\n")


def _bytes(script: dict[str, Any]) -> bytes:
    return json.dumps(script).encode()


if __name__ == "__main__":
    if "--server" in sys.argv:
        make_server().run("stdio")
    else:
        hansard.init(service_name="desk")
        sys.stdout.write(asyncio.run(answer("Where is order 7?")) + "\n")
