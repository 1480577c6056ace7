"""Tools with a class: what a gate knows of each, and sets of them."""

from __future__ import annotations

import contextlib
import copy
import inspect
import string
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from types import FunctionType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    TypeAlias,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from hansard._decorators import capture
from hansard._decorators.capture import CallPlan
from hansard._gate.arguments import Json, Shape
from hansard._gate.flow import Flow, FlowStep, may_be_async
from hansard._gate.unfinished import find_unfinished
from hansard._runtime.durations import Duration, seconds
from hansard.errors import (
    AwaitRequired,
    InvalidArguments,
    LazyResult,
    NotDecoratable,
    UnclassifiedTool,
    UnfinishedResult,
    UnknownTool,
)
from hansard_compiler.canonical import canonical_json

if TYPE_CHECKING:
    from hansard._gate.tracing import Mirror

Effect: TypeAlias = Literal["read", "write"]
Describe: TypeAlias = str | Callable[..., str | Awaitable[str]] | None
# The arguments and the result of a call; returns the tool that takes it back, and its arguments.
Undo: TypeAlias = Callable[[Json, Any], "tuple[Callable[..., Any] | str, Mapping[str, Any]]"]

EFFECTS: Final = ("read", "write")
MARK: Final = "__hansard_tool__"  # on what `@hansard.tool(effect=…)` returns
_NOBODY: Final = object()
_IN_PIECES: Final = "a generator runs in pieces, and a gate lets a call run whole"
# The one code that all functions with `@contextmanager` share, and that of the async ones.
_MANAGED: Final = tuple(
    cast("FunctionType", made).__code__
    for made in (contextlib.contextmanager(iter), contextlib.asynccontextmanager(iter))  # type: ignore[arg-type]
)


@dataclass(frozen=True, slots=True, eq=False)
class GatedTool:
    """A function that a gate may run."""

    name: str
    function: Callable[..., Any] = field(repr=False)  # the program's own, undecorated
    effect: Effect
    plan: CallPlan = field(repr=False)
    shape: Shape = field(repr=False)
    describe: Describe = field(default=None, repr=False)
    undo: Undo | None = field(default=None, repr=False)
    tool_class: str | None = None  # as rules name it: shell, web, database …
    wait_s: float = 0.0  # how long a call waits for its decision; infinity: until it expires
    known: frozenset[str] = field(default=frozenset(), repr=False)  # arguments of a closed set
    receiver: Any = field(default=_NOBODY, repr=False)  # the object or class of a method

    @property
    def is_async(self) -> bool:
        """Whether it is a coroutine function, so that its calls are awaited."""
        call = inspect.getattr_static(type(self.function), "__call__", None)
        return any(map(inspect.iscoroutinefunction, (self.function, call)))

    @property
    def may_wait(self) -> bool:
        """Whether a run of it may have to be awaited, as far as that shows beforehand."""
        return may_be_async(self.function) or may_be_async(self.undo)

    @property
    def needs_receiver(self) -> bool:
        return self.plan.parameters.skipped > 0 and self.receiver is _NOBODY

    def on(self, receiver: Any) -> GatedTool:
        """Return the tool of one object or class; itself if it needs none, or there is none."""
        needs_it = self.needs_receiver and receiver is not None
        return replace(self, receiver=receiver) if needs_it else self

    def called_with(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[GatedTool, Json]:
        """Return the tool of its receiver, and its arguments by name. Raises InvalidArguments."""
        if not self.needs_receiver:
            return self, self.shape.bound(args, kwargs)
        if not args:
            raise InvalidArguments(
                self.name, f"tool {self.name!r} is a method, called without object"
            )
        return replace(self, receiver=args[0]), self.shape.bound(args[1:], kwargs)

    def run(self, arguments: Mapping[str, Any], *, within: Mirror | None = None) -> Flow[Any]:
        """Run the function to its end: what it returns, awaited. Raises InvalidArguments before.

        There is no other way to run it: a driver waits for whatever is still to come.
        """
        result = yield FlowStep(lambda: self._called(arguments), within=within)
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            raise LazyResult(self.name)
        if found := find_unfinished(result):
            raise UnfinishedResult(self.name, found.kind, found.where)
        return result

    def description_of(self, arguments: Mapping[str, Any]) -> Flow[str | None]:
        """Return a call in a person's words; None for a tool that has none.

        It may be short: the store shows every argument as a field of its own, so no description can
        hide one. One that fails says so. Raises nothing but AwaitRequired.
        """
        if self.describe is None:
            return None
        try:
            if isinstance(self.describe, str):
                text = _filled(self.describe, arguments)
            else:
                text = yield FlowStep(partial(self.describe, **copy.deepcopy(dict(arguments))))
            if not isinstance(text, str) or not text.strip():
                raise TypeError("a description is a text")
        except AwaitRequired:
            raise
        except Exception as error:  # of the program's own function, or a template that does not fit
            kind = type(error).__name__
            return f"{self.name}: its description failed ({kind}), so every argument is listed"
        return text

    def _called(self, arguments: Mapping[str, Any]) -> Any:
        args, kwargs = self.shape.split(arguments)
        if self.needs_receiver:
            raise InvalidArguments(
                self.name, f"tool {self.name!r} is a method: say which object's, with instance=…"
            )
        before = () if self.receiver is _NOBODY else (self.receiver,)
        return self.function(*before, *args, **kwargs)

    def doubtful(self, arguments: Mapping[str, Any]) -> Json:
        """Return the arguments that a model may have invented: no defaults, no closed sets."""
        defaults = {one.name: one.default for one in self.shape.parameters}
        return {
            name: value
            for name, value in arguments.items()
            if name not in self.known and value != defaults.get(name, _NOBODY)
        }


def _filled(template: str, arguments: Mapping[str, Any]) -> str:
    """Fill names into a template: `{name}` alone, no attributes, indexes or formats."""
    parts = []
    for literal, name, form, conversion in string.Formatter().parse(template):
        parts.append(literal)
        if name is not None:
            if name not in arguments or form or conversion:
                raise ValueError(f"there is no argument {name!r}")
            value = arguments[name]
            parts.append(value if isinstance(value, str) else canonical_json(value))
    return "".join(parts)


def make_tool(
    function: Callable[..., Any],
    plan: CallPlan,
    *,
    name: str,
    effect: str,
    wait_s: Duration = 0.0,
    **gating: Any,
) -> GatedTool:
    """Return the tool of a function; `gating` are further fields of it.

    Raises NotDecoratable for what cannot be gated.
    """
    if effect not in EFFECTS:
        raise ValueError(f"effect is 'read' or 'write', not {effect!r}")
    _refuse_generators(function)
    return GatedTool(
        name=name,
        function=function,
        effect="read" if effect == "read" else "write",
        plan=plan,
        shape=Shape.of(name, function, skipped=plan.parameters.skipped),
        wait_s=seconds(wait_s, "wait_s"),
        known=_closed_sets(function),
        **gating,
    )


def _refuse_generators(function: Callable[..., Any]) -> None:
    call = inspect.getattr_static(type(function), "__call__", None)
    for is_such in (inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        if is_such(function) or is_such(call):
            raise NotDecoratable("tool", function, why=_IN_PIECES)
    if getattr(function, "__code__", None) in _MANAGED:
        raise NotDecoratable("tool", function, why=f"a call makes a context manager: {_IN_PIECES}")


def _closed_sets(function: Callable[..., Any]) -> frozenset[str]:
    """Return the parameters whose values are chosen from a list, and not invented."""
    try:
        hints = get_type_hints(function)
    except Exception:  # a name that is not there at run time: no hint
        return frozenset()
    return frozenset(name for name, hint in hints.items() if _is_closed(hint))


def _is_closed(hint: Any) -> bool:
    if get_origin(hint) is Literal or hint in (bool, type(None)):
        return True
    if isinstance(hint, type) and issubclass(hint, Enum):
        return True
    inner = get_args(hint)
    return bool(inner) and all(_is_closed(one) for one in inner)


def gated(found: Any) -> GatedTool | None:
    """Return the tool behind a decorated function or bound method, None where there is none."""
    if isinstance(found, GatedTool):
        return found
    tool = getattr(found, MARK, None)
    if not isinstance(tool, GatedTool):
        return None
    receiver = getattr(found, "__self__", _NOBODY)
    return tool if receiver is _NOBODY else tool.on(receiver)


class ToolSet:
    """The tools that one gate dispatches to, by name.

    What was decorated has its class. Plain functions get theirs here, by the list they are in:
    never by their name. A function without a class is known, and refused.
    """

    __module__ = "hansard"  # where programs find it

    def __init__(
        self,
        tools: Iterable[Callable[..., Any] | GatedTool] = (),
        *,
        reads: Iterable[Callable[..., Any]] = (),
        writes: Iterable[Callable[..., Any]] = (),
    ) -> None:
        self._tools: dict[str, GatedTool] = {}
        self._unclassified: set[str] = set()
        for one in tools:
            tool = gated(one)
            self._add(capture.name_of(cast("Callable[..., Any]", one)) if tool is None else tool)
        for effect, several in (("read", reads), ("write", writes)):
            for one in several:
                self._add(_classified(one, effect))

    def _add(self, tool: GatedTool | str) -> None:
        name = tool if isinstance(tool, str) else tool.name
        if name in self:
            raise ValueError(f"two tools of this set are called {name!r}")
        if isinstance(tool, str):
            self._unclassified.add(name)
        else:
            self._tools[name] = tool

    def with_attributes(self, attributes: Mapping[str, str | bool]) -> ToolSet:
        """Return the set with further attributes for the span of every call."""
        made = ToolSet()
        made._unclassified = set(self._unclassified)
        for tool in self:
            plan = replace(tool.plan, attributes={**tool.plan.attributes, **attributes})
            made._tools[tool.name] = replace(tool, plan=plan)
        return made

    def __contains__(self, name: object) -> bool:
        return name in self._tools or name in self._unclassified

    def __iter__(self) -> Iterator[GatedTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools) + len(self._unclassified)

    def find(self, name: str) -> GatedTool | None:
        """Return a tool that has a class, or None."""
        return self._tools.get(name)

    def get(self, name: str) -> GatedTool:
        """Return a tool; raises UnknownTool or UnclassifiedTool."""
        if name in self._unclassified:
            raise UnclassifiedTool(name)
        try:
            return self._tools[name]
        except (KeyError, TypeError):
            raise UnknownTool(str(name)) from None


def _classified(function: Callable[..., Any], effect: str) -> GatedTool:
    tool = gated(function)
    if tool is not None:
        if tool.effect != effect:
            raise ValueError(f"tool {tool.name!r} was decorated as {tool.effect}, not {effect}")
        return tool
    plan = capture.tool_plan(function, receives=False)
    return make_tool(function, plan, name=capture.name_of(function), effect=effect)


# ---- every decorated tool of this process

_registry: dict[str, GatedTool] = {}
_doubled: set[str] = set()


def register(tool: GatedTool) -> None:
    """Make a decorated tool known by its name, for decisions that come after a restart."""
    if tool.name in _registry and _registry[tool.name].plan != tool.plan:
        _doubled.add(tool.name)
    _registry[tool.name] = tool


def find_registered(name: str) -> GatedTool | None:
    """Return the one decorated tool of this name; None where there is none, or more than one."""
    return None if name in _doubled else _registry.get(name)
