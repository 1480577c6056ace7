"""A server for the protocol's conformance suite: `/mcp` of Hansard with the suite's own contents.

The application, its checks of Host, Origin and tokens, the door, the sessions, the transport and
the errors are the product's. In place of its tools stand those that the suite calls, and resources
and prompts, which the product does not have.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from hansard_compiler.calls import Json
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from hansard_web.mcp.api_client import ApiClient, ApiRefused, app_client
from hansard_web.mcp.arguments import Arguments
from hansard_web.mcp.server import called
from hansard_web.mcp.tools import ToolEntry

PNG: Final = (  # one pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "2mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
WAV: Final = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
NOTHING: Final[Json] = {"type": "object", "properties": {}}
Context = Any
Handler = Callable[[Context, Json], Awaitable[list[types.ContentBlock]]]


def text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)


def image() -> types.ImageContent:
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


def embedded(uri: str, words: str, mime_type: str = "text/plain") -> types.EmbeddedResource:
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=words)
    return types.EmbeddedResource(type="resource", resource=contents)


# ---- tools


async def say(_: Context, __: Json) -> list[types.ContentBlock]:
    return [text("This is a simple text response for testing.")]


async def show(_: Context, __: Json) -> list[types.ContentBlock]:
    return [image()]


async def sound(_: Context, __: Json) -> list[types.ContentBlock]:
    return [types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")]


async def embed(_: Context, __: Json) -> list[types.ContentBlock]:
    return [embedded("test://embedded-resource", "This is an embedded resource content.")]


async def mix(_: Context, __: Json) -> list[types.ContentBlock]:
    body = json.dumps({"test": "data", "value": 123})
    return [
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", body, "application/json"),
    ]


async def log(context: Context, _: Json) -> list[types.ContentBlock]:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", words, related_request_id=context.request_id)
    return [text("done")]


async def progress(context: Context, _: Json) -> list[types.ContentBlock]:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100, f"{done} of 100")
    return [text("done")]


async def sample(context: Context, given: Json) -> list[types.ContentBlock]:
    message = types.SamplingMessage(role="user", content=text(given["prompt"]))
    answer = await context.session.create_message(
        [message], max_tokens=100, related_request_id=context.request_id
    )
    return [text(f"LLM response: {answer.content.text}")]


def eliciting(schema: Json) -> Handler:
    async def elicit(context: Context, given: Json) -> list[types.ContentBlock]:
        answer = await context.session.elicit_form(
            given.get("message", "Please answer"), schema, related_request_id=context.request_id
        )
        content = json.dumps(answer.content)
        return [text(f"Elicitation completed: action={answer.action}, content={content}")]

    return elicit


def properties(*required: str, **named: Json) -> Json:
    return {"type": "object", "properties": named, "required": list(required)}


def titled(word: str, **titles: str) -> Json:
    return {word: [{"const": const, "title": title} for const, title in titles.items()]}


STRING: Final = {"type": "string"}
ANSWER: Final = properties("username", "email", username=STRING, email=STRING)
DEFAULTS: Final = properties(
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)
ENUMS: Final = properties(
    untitledSingle={"type": "string", "enum": ["option1", "option2", "option3"]},
    titledSingle=STRING | titled("oneOf", value1="First", value2="Second", value3="Third"),
    legacyEnum=STRING | {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    untitledMulti={
        "type": "array",
        "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
    },
    titledMulti={
        "type": "array",
        "items": titled("anyOf", value1="First", value2="Second", value3="Third"),
    },
)
DIALECT: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": properties(street=STRING, city=STRING)},
    "properties": {"name": STRING, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}

TOOLS: Final[dict[str, tuple[Handler, Json]]] = {
    "test_simple_text": (say, NOTHING),
    "test_image_content": (show, NOTHING),
    "test_audio_content": (sound, NOTHING),
    "test_embedded_resource": (embed, NOTHING),
    "test_multiple_content_types": (mix, NOTHING),
    "test_tool_with_logging": (log, NOTHING),
    "test_tool_with_progress": (progress, NOTHING),
    "test_sampling": (sample, properties("prompt", prompt=STRING)),
    "test_elicitation": (eliciting(ANSWER), properties("message", message=STRING)),
    "test_elicitation_sep1034_defaults": (eliciting(DEFAULTS), NOTHING),
    "test_elicitation_sep1330_enums": (eliciting(ENUMS), NOTHING),
    "json_schema_2020_12_tool": (say, DIALECT),
}


class Empty(Arguments):
    """No arguments."""


async def fail(_: ApiClient, __: Empty) -> Json:
    raise ApiRefused("on_purpose", "this tool intentionally returns an error for testing")


# A tool as the product's are, so that its error is made as theirs.
FAILING: Final = ToolEntry("test_error_handling", "Fail", "Answers an error.", Empty, fail)


async def list_tools(_: Context, __: Any) -> types.ListToolsResult:
    listed = [
        types.Tool(name=name, description=f"{name} of the suite", input_schema=schema)
        for name, (_, schema) in TOOLS.items()
    ]
    failing = types.Tool(
        name=FAILING.name,
        description=FAILING.description,
        input_schema=FAILING.takes.model_json_schema(),
    )
    return types.ListToolsResult(tools=[*listed, failing])


def calling(api: ApiClient) -> Callable[[Context, types.CallToolRequestParams], Awaitable[Any]]:
    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        given = params.arguments or {}
        if params.name == FAILING.name:
            return await called(FAILING, api, given)
        if params.name not in TOOLS:
            raise MCPError(types.INVALID_PARAMS, f"no tool {params.name!r}")
        handler, _ = TOOLS[params.name]
        return types.CallToolResult(content=await handler(context, given))

    return call_tool


# ---- resources


RESOURCES: Final[dict[str, types.TextResourceContents | types.BlobResourceContents]] = {
    "test://static-text": types.TextResourceContents(
        uri="test://static-text",
        mime_type="text/plain",
        text="This is the content of the static text resource.",
    ),
    "test://static-binary": types.BlobResourceContents(
        uri="test://static-binary", mime_type="image/png", blob=PNG
    ),
    "test://watched-resource": types.TextResourceContents(
        uri="test://watched-resource", mime_type="text/plain", text="Watched."
    ),
}
TEMPLATE: Final = "test://template/{id}/data"


async def list_resources(_: Context, __: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri=uri, name=uri, description=uri, mime_type=one.mime_type)
            for uri, one in RESOURCES.items()
        ]
    )


async def list_templates(_: Context, __: Any) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(
        uri_template=TEMPLATE, name="template", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(
    _: Context, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri in RESOURCES:
        return types.ReadResourceResult(contents=[RESOURCES[uri]])
    before, _, after = TEMPLATE.partition("{id}")
    if not (uri.startswith(before) and uri.endswith(after)):
        raise MCPError(types.INVALID_PARAMS, f"no resource {uri!r}")
    named = uri.removeprefix(before).removesuffix(after)
    body = {"id": named, "templateTest": True, "data": f"Data for ID: {named}"}
    contents = types.TextResourceContents(
        uri=uri, mime_type="application/json", text=json.dumps(body)
    )
    return types.ReadResourceResult(contents=[contents])


async def acknowledge(_: Context, __: Any) -> types.EmptyResult:
    return types.EmptyResult()


# ---- prompts


def argument(name: str) -> types.PromptArgument:
    return types.PromptArgument(name=name, description=name, required=True)


PROMPTS: Final = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}


async def list_prompts(_: Context, __: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(name=name, description=name, arguments=[argument(one) for one in takes])
            for name, takes in PROMPTS.items()
        ]
    )


async def get_prompt(_: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    given = params.arguments or {}
    said: list[types.ContentBlock]
    match params.name:
        case "test_simple_prompt":
            said = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            one, two = given["arg1"], given["arg2"]
            said = [text(f"Prompt with arguments: arg1='{one}', arg2='{two}'")]
        case "test_prompt_with_embedded_resource":
            said = [
                embedded(given["resourceUri"], "Embedded resource content for testing."),
                text("Please process the embedded resource above."),
            ]
        case "test_prompt_with_image":
            said = [image(), text("Please analyze the image above.")]
        case unknown:
            raise MCPError(types.INVALID_PARAMS, f"no prompt {unknown!r}")
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=one) for one in said]
    )


async def complete(_: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    values = [word for word in ("paris", "park", "party") if word.startswith(params.argument.value)]
    completion = types.Completion(values=values, total=len(values), has_more=False)
    return types.CompleteResult(completion=completion)


def make_fixture(api: ApiClient) -> Server[Any]:
    """Return the suite's server, to stand where the product's would."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)  # the suite still asks for logging
        return Server(
            "hansard-conformance",
            version="1",
            on_list_tools=list_tools,
            on_call_tool=calling(api),
            on_list_resources=list_resources,
            on_list_resource_templates=list_templates,
            on_read_resource=read_resource,
            on_subscribe_resource=acknowledge,
            on_unsubscribe_resource=acknowledge,
            on_list_prompts=list_prompts,
            on_get_prompt=get_prompt,
            on_completion=complete,
            on_set_logging_level=acknowledge,
        )


class Announcing(uvicorn.Server):
    """Says its address once it listens."""

    async def startup(self, *arguments: Any, **more: Any) -> None:
        await super().startup(*arguments, **more)
        port = self.servers[0].sockets[0].getsockname()[1]
        sys.stdout.write(json.dumps({"http": f"http://127.0.0.1:{port}"}) + "\n")
        sys.stdout.flush()


def main(data: str) -> None:
    """Serve until a signal."""
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    folder = DataFolder(Path(data))
    open_for_ingest(folder).close()
    app = create_app(folder, None, WebSettings())
    app.state.mcp = make_fixture(ApiClient(app_client(app), folder.key()))
    Announcing(uvicorn.Config(app, port=0, log_level="warning")).run()


if __name__ == "__main__":
    main(sys.argv[1])
