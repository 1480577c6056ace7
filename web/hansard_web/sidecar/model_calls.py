"""Model calls for programs without the SDK: the SDK's own call, recorded by the server.

Addresses and keys are the server's: a request names a provider and never where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from hansard._models.answer import ModelAnswer
from hansard._models.call import CallOptions, call_into
from hansard._runs.run import context_of
from hansard._tracing.context import entered
from hansard_compiler.calls import Json, message_json
from hansard_compiler.providers.adapter import Adapter, call_json
from hansard_compiler.providers.base import RenderInput, Sampling, from_payload
from hansard_compiler.providers.registry import ADAPTERS, AdapterSettings, adapter_for, deltas_of
from hansard_compiler.providers.scripted import Script, read_script
from hansard_compiler.providers.transport.vendor_sdk import Connection
from hansard_store.bodies import Answer, Body
from hansard_web.sidecar.bodies import OPTIONS, ModelInput
from hansard_web.sidecar.compiles import RecalledStep, recall
from hansard_web.sidecar.errors import NotRetained, ProviderNotSetUp, ProviderUnavailable
from hansard_web.sidecar.idempotency import Done
from hansard_web.sidecar.request import Place, SidecarService

_SAMPLING = ("max_output_tokens", "temperature", "top_p", "stop", "seed", "effort")


class Said(Body):
    """What a model said; `message` is its answer as an input of the next compile."""

    text: str
    tool_calls: list[dict[str, Any]]
    output: list[dict[str, Any]]
    message: dict[str, Any]


class CallRecord(Body):
    """What is stored of a model call under the key of its request."""

    run_id: str
    step_id: str | None
    compilation_id: str | None
    provider: str | None
    response_model: str | None
    response_id: str | None
    finish_reason: str | None
    tokens: dict[str, int]
    estimated_input_tokens: int | None
    incomplete_reason: str | None
    request_ref: str | None
    response_ref: str | None
    recipe_ref: str | None


class CalledModel(CallRecord, Answer):
    """A model's answer. Sent again under its key, `answer` is null and `response_ref` has it."""

    answer: Said | None


def call_model(
    service: SidecarService, request: ModelInput, tell: Callable[[str, Json], object] | None = None
) -> Done:
    """Call the model and answer with its output. The step is shown from before it is sent.

    `tell` receives that it began (`started`), and with `stream` of each piece (`delta`).
    """
    open_step = service.place(request.run_id, request.step_id)
    compiled = (
        recall(service, open_step, request.compilation_id) if request.compilation_id else None
    )
    adapter = _adapter(service, request, compiled)
    recording = service.outlet.recording(open_step.resource)
    render_input, options = _rendered_input(request, compiled)

    def begun(step_id: str) -> None:
        recording.save()
        if tell is not None:
            tell("started", {"run_id": open_step.trace_id, "step_id": step_id or None})

    def came(event: Json) -> None:
        if tell is not None:
            for delta in deltas_of(event):
                tell("delta", delta)

    try:
        with entered(context_of(open_step.trace_id, open_step.step_id)):
            result = call_into(
                recording.recorder,
                render_input,
                provider=adapter,
                on_begin=begun,
                stream=request.stream,
                on_event=came,
                **options,
            )
    finally:
        adapter.close()
        recording.save()
    return Done(_record(open_step, request, result), {"answer": _content(result)})


def called_again(service: SidecarService, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse to tell an earlier answer's content again: its bytes are in its payload."""
    if record.get("response_ref") is None:
        raise NotRetained("the answer was not kept; the step tells the rest")
    return {"answer": None}


def _adapter(
    service: SidecarService, request: ModelInput, compiled: RecalledStep | None
) -> Adapter:
    provider = request.provider or (compiled.provider if compiled else "")
    if provider not in ADAPTERS:
        raise ProviderUnavailable(f"no provider {provider!r}; there are {', '.join(ADAPTERS)}")
    base_url = None
    if provider == "openai_compatible":
        base_url = service.site.settings.model_server
        if base_url is None:
            raise ProviderNotSetUp("the server was started without --model-server ADDRESS")
    connection = Connection(
        base_url=base_url, timeout_s=request.timeout_s, max_retries=request.max_retries
    )
    script = _script(request, service.site.settings.script) if provider == "scripted" else None
    return adapter_for(provider, AdapterSettings(connection=connection, script=script))


def _script(request: ModelInput, usual: Json | None) -> Script:
    script = usual if request.script is None else request.script
    if script is None:
        raise ProviderUnavailable(
            "the scripted model needs a script, in the request or as a setting"
        )
    return read_script(orjson.dumps(script))


def _rendered_input(
    request: ModelInput, compiled: RecalledStep | None
) -> tuple[RecalledStep | RenderInput, CallOptions]:
    """Return the input and the options; messages without a compile hold everything themselves."""
    values = {name: value for name in OPTIONS if (value := getattr(request, name)) is not None}
    if compiled is not None:
        model = {"model": request.model} if request.model else {}
        options: CallOptions = {**model, **values}  # type: ignore[typeddict-item]  # names of ours
        return compiled, options
    sampling = {name: values.pop(name) for name in _SAMPLING if name in values}
    if "stop" in sampling:
        sampling["stop"] = tuple(sampling["stop"])
    payload = {
        "messages": request.messages,
        "system": [{"text": text} for text in request.system],
        "tools": request.tools,
    }
    render_input = from_payload(
        payload,
        model=request.model or "",
        sampling=Sampling(**sampling),
        stream=request.stream,
        **values,
    )
    return render_input, {}


def _record(open_step: Place, request: ModelInput, result: ModelAnswer) -> CallRecord:
    recorded, call = result.recorded, result.raw.call
    return {
        "run_id": open_step.trace_id,
        "step_id": recorded.step_id or None,
        "compilation_id": request.compilation_id,
        "provider": call.provider,
        "response_model": call.response_model,
        "response_id": call.response_id,
        "finish_reason": result.finish_reason,
        "tokens": call_json(call)["tokens"],
        "estimated_input_tokens": result.estimated_input_tokens,
        "incomplete_reason": result.shortfall.code if result.shortfall else None,
        "request_ref": recorded.request_ref or None,
        "response_ref": recorded.response_ref or None,
        "recipe_ref": recorded.recipe_ref or None,
    }


def _content(result: ModelAnswer) -> Said:
    """Return the text, the tool calls, and the message to go on with."""
    return {
        "text": result.text,
        "tool_calls": [
            {"call_id": one.id, "name": one.name, "arguments": one.arguments}
            for one in result.tool_calls
        ],
        "output": [message_json(message) for message in result.raw.call.output],
        "message": result.message,
    }
