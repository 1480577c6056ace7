"""`@agent`, `@tool` and `@trace`: a span around every call of a function, of any kind.

The function stays what it is: its signature, docstring, result and exceptions, and whether it is a
coroutine function, a generator or neither. Before `hansard.init()` a call costs one check more.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, overload

from hansard._decorators import capture
from hansard._decorators.capture import CallPlan, Kind
from hansard._decorators.generators import ObservedAsyncGenerator, ObservedGenerator, begun
from hansard._runtime import recorder as _state
from hansard._runtime.recorder import Recorder
from hansard._tracing.observation import Observation, begin, log_failure
from hansard._tracing.serialization import is_future, is_pending
from hansard.errors import NotDecoratable

if TYPE_CHECKING:
    from hansard._gate.tools import Describe, Effect, Undo
    from hansard._runtime.durations import Duration

# Bound to what comes in, so that a type checker sees the very same function come out.
F = TypeVar("F", bound="Callable[..., Any] | classmethod[Any, ..., Any]")
_MakePlan = Callable[..., CallPlan]


@overload
def agent(function: F, /) -> F: ...
@overload
def agent(
    *, name: str | None = None, capture_input: bool = True, capture_output: bool = True
) -> Callable[[F], F]: ...
def agent(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    capture_input: bool = True,
    capture_output: bool = True,
) -> Any:
    """Record each call as an agent's run: span `invoke_agent {name}`, by default the function's.

    Outside any trace a call begins a run; inside one it is an agent within it.
    """
    options = {"name": name, "capture_input": capture_input, "capture_output": capture_output}
    return _decorate("agent", function, capture.agent_plan, options)


@overload
def tool(
    function: F,
    /,
    *,
    effect: Effect | None = None,
    describe: Describe = None,
    undo: Undo | None = None,
    tool_class: str | None = None,
    wait_s: Duration = 0.0,
    name: str | None = None,
    description: str | None = None,
    call_id: str | None = None,
    capture_input: bool = True,
    capture_output: bool = True,
) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    call_id: str | None = None,
    capture_input: bool = True,
    capture_output: bool = True,
) -> Callable[[F], F]: ...
@overload
def tool(
    *,
    effect: Effect,
    describe: Describe = None,
    undo: Undo | None = None,
    tool_class: str | None = None,
    wait_s: Duration = 0.0,
    name: str | None = None,
    description: str | None = None,
    call_id: str | None = None,
    capture_input: bool = True,
    capture_output: bool = True,
) -> Callable[[F], F]: ...
def tool(
    function: Any = None,
    /,
    *,
    effect: Effect | None = None,
    describe: Describe = None,
    undo: Undo | None = None,
    tool_class: str | None = None,
    wait_s: Duration = 0.0,
    name: str | None = None,
    description: str | None = None,
    call_id: str | None = None,
    capture_input: bool = True,
    capture_output: bool = True,
) -> Any:
    """Record each call as a tool's: span `execute_tool {name}`.

    Without an `effect` calls are recorded, and never held. With one, they go through a gate
    (docs/gate.md): `effect="read"` runs at once and is an event of the audit log, `effect="write"`
    needs an approval and returns `pending_confirmation`; with `wait_s` (seconds or a timedelta,
    `math.inf` until the approval expires) it waits for the decision and then runs what was
    approved. `describe` puts the call in words for the approver: a template such as
    `"Create contact {name}"`, or a function of the arguments. `undo` takes arguments and result,
    and returns the tool and the arguments of the call that reverts this one. `tool_class` is a
    name for rules.

    `description` defaults to the docstring. `call_id` names the parameter that holds the
    model's id of the call, which joins the request to what ran.
    """
    options: dict[str, Any] = {
        "name": name,
        "description": description,
        "call_id": call_id,
        "capture_input": capture_input,
        "capture_output": capture_output,
    }
    gating = {"describe": describe, "undo": undo, "tool_class": tool_class, "wait_s": wait_s}
    if effect is None:
        useless = [name for name, value in gating.items() if value not in (None, False)]
        if useless:
            raise TypeError(f"@hansard.tool({useless[0]}=…) is for tools with an effect=")
        return _decorate("tool", function, capture.tool_plan, options)
    from hansard._gate.gate import gate_tool

    decorate = gate_tool(effect, options, gating)
    return decorate if function is None else decorate(function)


@overload
def trace(function: F, /) -> F: ...
@overload
def trace(
    *,
    name: str | None = None,
    kind: Kind = "chain",
    capture_input: bool = True,
    capture_output: bool = True,
) -> Callable[[F], F]: ...
def trace(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    kind: Kind = "chain",
    capture_input: bool = True,
    capture_output: bool = True,
) -> Any:
    """Record each call as a step of this kind, named like the function."""
    options = {
        "name": name,
        "kind": kind,
        "capture_input": capture_input,
        "capture_output": capture_output,
    }
    return _decorate("trace", function, capture.trace_plan, options)


# ---- what comes in


def _decorate(word: str, function: Any, make_plan: _MakePlan, options: dict[str, Any]) -> Any:
    def wrap(found: Callable[..., Any], *, receives: bool | None) -> Callable[..., Any]:
        return with_span(found, make_plan(found, receives=receives, **options))

    decorate = functools.partial(decorated, word, wrap)
    return decorate if function is None else decorate(function)


def decorated(word: str, wrap: Callable[..., Callable[..., Any]], found: Any) -> Any:
    """Wrap a function; a classmethod or staticmethod is opened, wrapped and closed again."""
    if isinstance(found, staticmethod | classmethod):
        return type(found)(wrap(found.__func__, receives=isinstance(found, classmethod)))
    if not callable(found) or isinstance(found, type):
        raise NotDecoratable(word, found)
    return wrap(found, receives=None)


def with_span(function: Callable[..., Any], plan: CallPlan) -> Callable[..., Any]:
    for is_such, wrap in (
        (inspect.isasyncgenfunction, _wrapped_async_generator),
        (inspect.iscoroutinefunction, _wrapped_coroutine),
        (inspect.isgeneratorfunction, _wrapped_generator),
    ):
        # An object that is called is what its class's `__call__` is.
        if is_such(function) or is_such(inspect.getattr_static(type(function), "__call__", None)):
            return with_metadata_of(wrap(function, plan), function)
    return with_metadata_of(_wrapped_plain(function, plan), function)


def with_metadata_of(
    wrapper: Callable[..., Any], function: Callable[..., Any]
) -> Callable[..., Any]:
    """Give the wrapper the function's name, docstring, annotations and `__wrapped__`."""
    # The attributes of an object that is called are its state, and none of a function's.
    updated = ("__dict__",) if inspect.isroutine(function) else ()
    functools.update_wrapper(wrapper, function, updated=updated)
    if not hasattr(function, "__name__"):
        wrapper.__name__ = capture.name_of(function)
        wrapper.__qualname__ = capture.qualified_name(function)
    return wrapper


# ---- what goes out


def _start(
    recorder: Recorder, plan: CallPlan, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Observation | None:
    observed = begin(recorder, plan.span_name, plan.attributes_for(recorder))
    if observed is None:
        return None
    if plan.agent is not None:
        observed.name_agent(plan.agent)
    if not observed.is_recording:
        return observed
    try:
        plan.record_call(observed, plan.parameters.named(args, kwargs))
    except Exception as error:
        log_failure("arguments", error)
    return observed


def _wrapped_plain(function: Callable[..., Any], plan: CallPlan) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        recorder = _state._recorder
        observed = None if recorder is None else _start(recorder, plan, args, kwargs)
        if observed is None:
            return function(*args, **kwargs)
        with observed:
            result = function(*args, **kwargs)
        if is_pending(result):
            return _to_come(observed, plan, result)
        plan.finish(observed, result)
        return result

    return wrapper


def _wrapped_coroutine(function: Callable[..., Any], plan: CallPlan) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        recorder = _state._recorder
        observed = None if recorder is None else _start(recorder, plan, args, kwargs)
        if observed is None:
            return await function(*args, **kwargs)
        with observed:
            result = await function(*args, **kwargs)
        plan.finish(observed, result)
        return result

    return wrapper


def _to_come(observed: Observation, plan: CallPlan, result: Any) -> Any:
    """Return what a plain function returned, its span open until that is there.

    A coroutine comes back in another one, a future as it is. Of other awaitables nothing is known
    but their type: the span ends, and its output says that it was not awaited.
    """
    if isinstance(result, Coroutine):
        return _observed_coroutine(result, observed, plan)
    if not is_future(result):
        plan.finish(observed, result)
        return result

    def done(future: Any) -> None:
        if future.cancelled():
            observed.cancel()
            return
        # Not `exception()`, after which asyncio does not log one that was never retrieved.
        error = future._exception
        if error is None:
            plan.finish(observed, future.result())
        else:
            observed.fail(error)

    result.add_done_callback(done)
    return result


async def _observed_coroutine(made: Coroutine[Any, Any, Any], observed: Any, plan: CallPlan) -> Any:
    with observed:
        result = await made
    plan.finish(observed, result)
    return result


def _wrapped_generator(function: Callable[..., Any], plan: CallPlan) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        recorder = _state._recorder
        observed = None if recorder is None else _start(recorder, plan, args, kwargs)
        if observed is None:
            return (yield from function(*args, **kwargs))
        make = functools.partial(function, *args, **kwargs)
        return (yield from ObservedGenerator(make, observed, plan.output_key))

    return wrapper


def _wrapped_async_generator(function: Callable[..., Any], plan: CallPlan) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        recorder = _state._recorder
        observed = None if recorder is None else _start(recorder, plan, args, kwargs)
        generator: Any
        if observed is None:
            generator = function(*args, **kwargs)
            step = begun(generator)
        else:
            make = functools.partial(function, *args, **kwargs)
            generator = ObservedAsyncGenerator(make, observed, plan.output_key)
            step = generator.begin()
        while True:
            try:
                item = await step
            except StopAsyncIteration:
                return
            try:
                sent = yield item
            except GeneratorExit:
                await generator.aclose()
                raise
            except BaseException as error:
                step = generator.athrow(error)
            else:
                step = generator.asend(sent)

    return wrapper
