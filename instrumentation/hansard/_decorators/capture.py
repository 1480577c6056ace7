"""What a decorator knows of its function beforehand: span name, attributes, parameter names.

Worked out once, when the function is decorated, so that a call costs little.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from opentelemetry.util.types import AttributeValue

from hansard import semconv
from hansard._tracing.observation import clean_attribute, log_failure
from hansard._tracing.serialization import safe_repr

if TYPE_CHECKING:
    from hansard._runtime.recorder import Recorder
    from hansard._tracing.observation import Observation
    from hansard_compiler.redaction.redactor import Redactor
    from hansard_compiler.retention_modes import RetentionMode

Kind = Literal[
    "llm", "embedding", "agent", "workflow", "tool", "retriever", "rerank", "memory", "policy",
    "compile", "approval", "guardrail", "evaluator", "prompt", "mcp", "task", "chain", "other",
]  # fmt: skip
_RECEIVERS: Final = ("self", "cls")
_MAX_CALL_ID_CHARS: Final = 256
_MAX_DESCRIPTION_CHARS: Final = 1_000
_LOCALS: Final = "<locals>."


@dataclass(frozen=True, slots=True)
class Parameters:
    """The names that arguments are shown under."""

    positional: tuple[str, ...]  # without self or cls
    skipped: int  # 1 when the first argument is self or cls
    rest: str  # of *args
    call_id: str | None = None  # the parameter that holds the model's id of a tool call

    def named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name; defaults are not among them."""
        values = args[self.skipped :]
        named = dict(zip(self.positional, values, strict=False))
        if len(values) > len(self.positional):
            named[self.rest] = list(values[len(self.positional) :])
        if not kwargs:
            return named
        doubled = named.keys() & kwargs.keys()  # f(a, /, **more) called as f(1, a=2)
        if doubled:
            return (
                named
                | {k: v for k, v in kwargs.items() if k not in doubled}
                | {f"**{name}": kwargs[name] for name in doubled}
            )
        return named | dict(kwargs)


class _Known(NamedTuple):
    """Attributes as one recorder lets them out."""

    redactor: Redactor
    mode: RetentionMode
    attributes: Mapping[str, AttributeValue]


@dataclass(frozen=True, slots=True)
class CallPlan:
    """How calls of one function are recorded."""

    span_name: str
    attributes: Mapping[str, AttributeValue]
    parameters: Parameters
    input_key: str | None  # None: arguments are not captured
    output_key: str | None
    description: str | None = None  # of a tool; content, so `metadata_only` leaves it out
    agent: str | None = None  # whose calls they are, for what happens in them
    _known: list[_Known] = field(default_factory=list, init=False, repr=False, compare=False)

    def attributes_for(self, recorder: Recorder) -> Mapping[str, AttributeValue]:
        """Return the attributes of every call as a recorder lets them out; cleaned once."""
        if not self.description:
            return self.attributes
        redactor, mode = recorder.redactor, recorder.settings.retention
        for known in self._known:
            if known.redactor is redactor and known.mode is mode:
                return known.attributes
        try:
            clean = clean_attribute(recorder, semconv.TOOL_DESCRIPTION, self.description)
        except Exception as error:
            log_failure("attribute", error)
            return self.attributes
        attributes = {**self.attributes, semconv.TOOL_DESCRIPTION: clean}
        self._known[:] = [_Known(redactor, mode, attributes)]
        return attributes

    def record_call(self, observed: Observation, named: Mapping[str, Any]) -> None:
        """Record the arguments of a call, and the model's id of it."""
        call_id = named.get(self.parameters.call_id) if self.parameters.call_id else None
        if isinstance(call_id, str | int):
            observed.span.set_attribute(semconv.TOOL_CALL_ID, str(call_id)[:_MAX_CALL_ID_CHARS])
        if self.input_key is not None and named:
            observed.put(self.input_key, named)

    def finish(self, observed: Observation, result: Any) -> None:
        """Record the result of a call, and end its span."""
        if self.output_key is not None and result is not None:
            observed.put(self.output_key, result)
        observed.end()


def agent_plan(function: Callable[..., Any], *, name: str | None, **more: Any) -> CallPlan:
    """Return how an agent's calls are recorded: `invoke_agent {name}`."""
    name = name or qualified_name(function)
    attributes = {semconv.OPERATION_NAME: semconv.OP_INVOKE_AGENT, semconv.AGENT_NAME: name}
    return _plan(function, f"{semconv.OP_INVOKE_AGENT} {name}", attributes, agent=name, **more)


def tool_plan(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    **more: Any,
) -> CallPlan:
    """Return how a tool's calls are recorded: `execute_tool {name}`."""
    name = name or name_of(function)
    attributes = {
        semconv.OPERATION_NAME: semconv.OP_EXECUTE_TOOL,
        semconv.TOOL_NAME: name,
        semconv.TOOL_TYPE: "function",
    }
    if description is None:
        text = getattr(_named_function(function), "__doc__", None)
        if isinstance(text, str):
            description = inspect.cleandoc(text)[:_MAX_DESCRIPTION_CHARS]
    keys = (semconv.TOOL_CALL_ARGUMENTS, semconv.TOOL_CALL_RESULT)
    span_name = f"{semconv.OP_EXECUTE_TOOL} {name}"
    return _plan(function, span_name, attributes, keys=keys, description=description, **more)


def trace_plan(
    function: Callable[..., Any], *, name: str | None, kind: Kind, **more: Any
) -> CallPlan:
    """Return how any other function's calls are recorded: a span named like the function."""
    return _plan(function, name or qualified_name(function), {semconv.KIND: kind}, **more)


def _plan(
    function: Callable[..., Any],
    span_name: str,
    attributes: Mapping[str, AttributeValue],
    *,
    receives: bool | None,
    capture_input: bool = True,
    capture_output: bool = True,
    call_id: str | None = None,
    keys: tuple[str, str] = (semconv.INPUT, semconv.OUTPUT),
    description: str | None = None,
    agent: str | None = None,
) -> CallPlan:
    module = str(getattr(_named_function(function), "__module__", "") or "")
    return CallPlan(
        span_name=span_name,
        attributes={
            **attributes,
            semconv.CODE_FUNCTION_NAME: f"{module}.{qualified_name(function)}",
            semconv.HANSARD_SCHEMA_VERSION: semconv.SCHEMA_VERSION,
        },
        parameters=_parameters_of(function, receives=receives, call_id=call_id),
        input_key=keys[0] if capture_input else None,
        output_key=keys[1] if capture_output else None,
        description=description,
        agent=agent,
    )


# ---- what a function says of itself


def _parameters_of(
    function: Callable[..., Any], *, receives: bool | None, call_id: str | None
) -> Parameters:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # written in C, and silent about it
        return Parameters((), 0, "args", call_id)
    positional, rest = [], "args"
    for one in signature.parameters.values():
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            positional.append(one.name)
        elif one.kind is one.VAR_POSITIONAL:
            rest = one.name
    skipped = _receives(function, positional) if receives is None else receives
    return Parameters(tuple(positional[int(skipped) :]), int(skipped), rest, call_id)


def _receives(function: Callable[..., Any], positional: list[str]) -> bool:
    """Whether the first argument is the object or class of a method."""
    owner = str(getattr(function, "__qualname__", "")).rpartition(".")[0]
    in_class = bool(owner) and not owner.endswith("<locals>")
    return in_class and bool(positional) and positional[0] in _RECEIVERS


def _named_function(function: Callable[..., Any]) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function if hasattr(function, "__qualname__") else type(function)


def name_of(function: Callable[..., Any]) -> str:
    """Return a function's bare name; of a callable object, its class's."""
    return str(getattr(_named_function(function), "__name__", None) or safe_repr(function))


def qualified_name(function: Callable[..., Any]) -> str:
    """Return a function's name with its class, without the functions around it."""
    name = str(getattr(_named_function(function), "__qualname__", "") or name_of(function))
    return name.rpartition(_LOCALS)[2]
