"""`@hansard.tool(effect=…)`: functions and methods whose calls go through a gate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hansard._decorators import function_spec
from hansard._decorators.decorators import with_metadata_of, with_span
from hansard._gate import invocation
from hansard._gate.flow import adrive, begin
from hansard._gate.gate import gate_for
from hansard._gate.tools import MARK, GatedTool, make_tool, register
from hansard.errors import NotDecoratable


def gate_tool(effect: str, options: dict[str, Any], gating: dict[str, Any]) -> Callable[[Any], Any]:
    """Return the decorator for tools of this effect."""

    def decorate(found: Any) -> Any:
        if isinstance(found, staticmethod | classmethod):
            receives = isinstance(found, classmethod)
            return type(found)(_wrapped(found.__func__, effect, options, gating, receives=receives))
        if not callable(found) or isinstance(found, type):
            raise NotDecoratable("tool", found)
        return _wrapped(found, effect, options, gating, receives=None)

    return decorate


def _wrapped(
    function: Callable[..., Any],
    effect: str,
    options: dict[str, Any],
    gating: dict[str, Any],
    *,
    receives: bool | None,
) -> Callable[..., Any]:
    plan = function_spec.tool_plan(function, receives=receives, **options)
    name = options["name"] or function_spec.name_of(function)
    tool = make_tool(function, plan, name=name, effect=effect, **gating)
    register(tool)
    # Where no gate is, a tool that reads is observed like any other.
    observed = with_span(function, plan)
    wrapper = with_metadata_of((_async if tool.is_async else _plain)(tool, observed), function)
    setattr(wrapper, MARK, tool)
    return wrapper


def _plain(tool: GatedTool, observed: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gate = gate_for(tool)
        if gate is None:
            return observed(*args, **kwargs)
        bound, arguments = tool.called_with(args, kwargs)
        # A plain function may return an awaitable: then so does this, and the rest is awaited.
        return begin(invocation.answer(gate, bound, arguments))

    return wrapper


def _async(tool: GatedTool, observed: Callable[..., Any]) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        gate = gate_for(tool)
        if gate is None:
            return await observed(*args, **kwargs)
        bound, arguments = tool.called_with(args, kwargs)
        return await adrive(invocation.answer(gate, bound, arguments))

    return wrapper
