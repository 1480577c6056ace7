"""Tools with a class: what a gate knows of each, and sets of them."""

from __future__ import annotations

import contextlib
import gc
import inspect
import itertools
import queue
import types
from collections import ChainMap, OrderedDict, UserDict, UserList, deque
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from dataclasses import dataclass, field, replace
from enum import Enum
from types import FunctionType
from typing import Any, Final, Literal, TypeAlias, cast, get_args, get_origin, get_type_hints

from hansard._decorators import function_spec
from hansard._decorators.function_spec import Plan
from hansard._gate.arguments import Json, Shape
from hansard._gate.description import Describe
from hansard._gate.flow import Flow, Step, Within, may_be_async
from hansard._tracing.serialization import is_future, is_pending, type_name
from hansard.errors import (
    BadArguments,
    LazyResult,
    NotDecoratable,
    UnclassifiedTool,
    UnfinishedResult,
    UnknownTool,
)

# What stands in a tool's result and has not run: a call with such a result has not ended.
#
# Looked at is all that a result holds: containers of every built-in kind (dicts with their keys),
# data classes, attrs and pydantic objects, named tuples, exceptions (arguments, causes, contexts,
# notes, what a group holds), what futures that are done hold, iterators over these, and the
# attributes of other objects, of classes and of modules; nearest first, within a bound. A result is
# found unfinished by
#
# - a coroutine that was not awaited to its end, or another awaitable;
# - a future or task that is not done;
# - a generator, of either kind, that was not read to its end;
# - a context manager made of a generator (`@contextmanager`) that was not entered and left;
# - `map`, `filter` and those of itertools that call a function with each value: whether they were
# read to their end cannot be seen.
#
# Behind the attributes of an object that is none of these containers only a coroutine counts that
# nobody has begun to await: clients of all kinds hold tasks, locks and streams of their own.
# Functions are values; what a result refers to by a name, a closure or a weak reference is not
# looked at, nor what lies beyond the bound.

_MOST_VALUES: Final = 100_000  # looked at; a list of so many takes some 10 ms
_MOST_BEHIND: Final = 2_000  # of these, behind attributes of other objects
_MOST_PATH: Final = 120  # characters of a place

_PLAIN: Final = frozenset(
    {type(None), bool, int, float, complex, str, bytes, bytearray, memoryview, range}
)
_CODE: Final = (
    types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.FrameType,
    types.TracebackType,
)  # fmt: skip
# Classes and modules hold what a program is made of: one that stands in the result itself is looked
# at, for what is no code, and none behind an object.
_NAMESPACES: Final = (type, types.ModuleType)
_CALLING: Final = (
    map, filter, itertools.starmap, itertools.takewhile, itertools.dropwhile,
    itertools.filterfalse, itertools.accumulate, itertools.groupby, type(iter(int, 1)),
)  # fmt: skip
# What a `tee` reads from stands in a type without a public name.
_TEED: Final = tuple(map(type, gc.get_referents(itertools.tee([None])[0])))
# Since Python 3.12.
_NEWER: Final = tuple(getattr(itertools, one) for one in ("batched",) if hasattr(itertools, one))


class _Indexed:
    """Iterated by numbers: `iter` makes of it an iterator whose type has no public name."""

    def __getitem__(self, _: int) -> None:
        raise IndexError


# What these are made of the collector of garbage knows; none of them runs code of the program.
_ITERATORS: Final[tuple[type, ...]] = (
    zip, enumerate, reversed, itertools.chain, itertools.islice, itertools.zip_longest,
    itertools.cycle, itertools.repeat, itertools.product, itertools.pairwise, itertools.compress,
    itertools.combinations, itertools.permutations, itertools.combinations_with_replacement,
    type(iter([])), type(iter(())), type(iter({})), type(iter({}.values())), type(iter({}.items())),
    type(iter(set())), type(iter(deque())), type(reversed([])), type(itertools.tee(())[0]),
    type({}.keys()), type({}.values()), type({}.items()), *_TEED,
    type(reversed({})), type(reversed({}.values())), type(reversed({}.items())),
    type(reversed(deque())), type(iter(OrderedDict())), type(OrderedDict().keys()),
    type(OrderedDict().values()), type(OrderedDict().items()), type(iter(_Indexed())),
    types.CellType, queue.SimpleQueue, *_NEWER,
)  # fmt: skip
# What a call of a function with `@contextmanager` or `@asynccontextmanager` returns: these have no
# public name. The generator stands in the attribute `gen`.
_MANAGERS: Final[tuple[type, ...]] = (
    type(contextlib.contextmanager(iter)([])),
    type(contextlib.asynccontextmanager(iter)([])),  # type: ignore[arg-type]  # never entered
)
_FIELDS: Final = ("__dataclass_fields__", "__attrs_attrs__", "__pydantic_fields__")
_SEQUENCES: Final = (list, tuple, set, frozenset, deque)
_HOLDING: Final = (
    types.SimpleNamespace, BaseException, ChainMap, UserDict, UserList, slice, types.GenericAlias,
)  # fmt: skip
# What an object holds in C, and shows under these names: read past the class of the program.
_SHOWN: Final = tuple(
    (name, vars(BaseException)[name]) for name in ("args", "__cause__", "__context__")
)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What has not run, and where in the result it stands."""

    kind: str  # "coroutine", "map", the name of a class
    where: str  # "[2]", "['job'].task"; "" for the result itself


@dataclass(frozen=True, slots=True)
class _Place:
    value: Any
    path: str
    is_behind: bool  # the attributes of an object that is no container


def find_unfinished(result: Any) -> Unfinished | None:
    """Return the nearest part of a result that has not run; None where all is there."""
    if type(result) in _PLAIN:
        return None
    places = deque([_Place(result, "", is_behind=False)])
    # Kept beside their ids, so that no id is that of another value meanwhile.
    seen: dict[int, Any] = {id(result): result}
    left, left_behind = _MOST_VALUES, _MOST_BEHIND
    while places:
        place = places.popleft()
        if kind := _kind_of(place.value, is_behind=place.is_behind):
            return Unfinished(kind, place.path[:_MOST_PATH])
        for path, value, is_behind in _parts(place):
            if left <= 0 or (is_behind and left_behind <= 0):
                break
            left -= 1
            left_behind -= is_behind
            if type(value) not in _PLAIN and id(value) not in seen:
                seen[id(value)] = value
                places.append(_Place(value, path, is_behind=is_behind))
    return None


def _kind_of(value: Any, *, is_behind: bool) -> str:
    """Return what an unfinished value is called; "" for any other."""
    kind = type(value)
    try:
        if issubclass(kind, Coroutine):
            return _coroutine(value, is_behind=is_behind)
        if is_behind:
            return ""
        if issubclass(kind, _CALLING):
            return kind.__name__
        if issubclass(kind, Generator | AsyncGenerator):
            return "" if _is_read(value) else kind.__name__
        if issubclass(kind, _MANAGERS):
            return "" if _is_read(value.gen) else kind.__name__.lstrip("_")
        if is_future(value):
            return "" if value.done() else kind.__name__
        return type_name(kind) if is_pending(value) else ""
    except Exception:  # a class that answers no question about itself
        return ""


def _coroutine(value: Any, *, is_behind: bool) -> str:
    if not isinstance(value, types.CoroutineType):
        return "" if is_behind else type_name(type(value))
    state = inspect.getcoroutinestate(value)
    is_open = state == inspect.CORO_CREATED if is_behind else state != inspect.CORO_CLOSED
    return "coroutine" if is_open else ""


def _is_read(value: Any) -> bool:
    """Whether a generator has ended: then it has no frame."""
    frame = "gi_frame" if isinstance(value, types.GeneratorType) else "ag_frame"
    return getattr(value, frame, value) is None


def _parts(place: _Place) -> Iterator[tuple[str, Any, bool]]:
    """Yield path, value and kind of place of what a value holds; runs no code of the program."""
    value, kind = place.value, type(place.value)
    try:
        if issubclass(kind, _CODE):
            return
        if issubclass(kind, _NAMESPACES):
            yield from _of_namespace(value, place)
            return
        if issubclass(kind, _ITERATORS):
            for one in gc.get_referents(value):
                yield f"{place.path}[…]", one, place.is_behind
            return
        if kind is types.MappingProxyType:
            yield from _of_mapping(value.items(), place)
            return
        if issubclass(kind, dict):
            yield from _of_mapping(dict.items(value), place)
        elif issubclass(kind, _SEQUENCES):
            base = next(one for one in _SEQUENCES if issubclass(kind, one))
            for number, one in enumerate(list(base.__iter__(value))):
                yield f"{place.path}[{number}]", one, place.is_behind
        if kind is not dict and kind not in _SEQUENCES:
            yield from _of_object(value, kind, place)
    except Exception:  # a hostile class: what it does not show is not looked at
        return


def _of_namespace(value: Any, place: _Place) -> Iterator[tuple[str, Any, bool]]:
    """Yield what a class or a module holds of its own and is no code."""
    if place.is_behind:
        return
    owner = type if issubclass(type(value), type) else types.ModuleType
    own: Mapping[str, Any] = vars(owner)["__dict__"].__get__(value)
    for name, one in list(own.items()):
        if type(one) not in _PLAIN and not issubclass(type(one), (*_CODE, *_NAMESPACES)):
            yield f"{place.path}.{name}", one, True


def _of_mapping(items: Iterable[tuple[Any, Any]], place: _Place) -> Iterator[tuple[str, Any, bool]]:
    for key, one in list(items):
        name = repr(key)[:40] if type(key) in (str, int) else "…"
        yield f"{place.path}[{name}]", one, place.is_behind
        if type(key) not in _PLAIN:
            yield f"{place.path}, a key", key, place.is_behind


def _of_object(value: Any, kind: type, place: _Place) -> Iterator[tuple[str, Any, bool]]:
    is_behind = place.is_behind or not _has_fields(kind)
    for name, one in _attributes(value, kind):
        yield f"{place.path}.{name}", one, is_behind
    if is_future(value) and (ended := _ended(value)) is not None:
        yield f"{place.path}.result()", ended, place.is_behind


def _ended(future: Any) -> Any:
    """Return the result, or the exception, of a future that is done; None where there is none."""
    if not future.done() or future.cancelled():
        return None
    # `exception()` would mark its error as retrieved, and asyncio would not log it.
    return future._exception if future._exception is not None else future._result


def _has_fields(kind: type) -> bool:
    """Whether a class is made to hold values: they count as those of a dict do."""
    if issubclass(kind, _HOLDING):
        return True
    return any(inspect.getattr_static(kind, one, None) is not None for one in _FIELDS)


def _attributes(value: Any, kind: type) -> Iterator[tuple[str, Any]]:
    """Yield what an object has of its own, past properties and `__getattr__`."""
    try:
        own: Mapping[str, Any] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        own = {}
    if type(own) is dict:
        yield from list(own.items())
    if issubclass(kind, BaseException):
        for name, shown in _SHOWN:
            yield name, shown.__get__(value)
    for base in kind.__mro__:
        for name, slot in list(vars(base).items()):
            if type(slot) is types.MemberDescriptorType:
                try:
                    yield name, slot.__get__(value)
                except AttributeError:
                    continue  # declared and not set


Effect: TypeAlias = Literal["read", "write"]
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
    plan: Plan = field(repr=False)
    shape: Shape = field(repr=False)
    describe: Describe = field(default=None, repr=False)
    undo: Undo | None = field(default=None, repr=False)
    tool_class: str | None = None  # as rules name it: shell, web, database …
    wait: float | bool = False  # how long a call waits for its decision, seconds; True: till expiry
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
        """Return the tool of one object or class."""
        return replace(self, receiver=receiver)

    def called_with(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[GatedTool, Json]:
        """Return the tool of its receiver, and its arguments by name. Raises BadArguments."""
        if not self.needs_receiver:
            return self, self.shape.bound(args, kwargs)
        if not args:
            raise BadArguments(self.name, f"tool {self.name!r} is a method, called without object")
        return self.on(args[0]), self.shape.bound(args[1:], kwargs)

    def run(self, arguments: Mapping[str, Any], *, within: Within | None = None) -> Flow[Any]:
        """Run the function to its end: what it returns, awaited. Raises BadArguments before.

        There is no other way to run it: a driver waits for whatever is still to come.
        """
        result = yield Step(lambda: self._called(arguments), within=within)
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            raise LazyResult(self.name)
        if found := find_unfinished(result):
            raise UnfinishedResult(self.name, found.kind, found.where)
        return result

    def _called(self, arguments: Mapping[str, Any]) -> Any:
        args, kwargs = self.shape.split(arguments)
        if self.needs_receiver:
            raise BadArguments(
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


def make_tool(
    function: Callable[..., Any],
    plan: Plan,
    *,
    name: str,
    effect: str,
    describe: Describe = None,
    undo: Undo | None = None,
    tool_class: str | None = None,
    wait: float | bool = False,
) -> GatedTool:
    """Return the tool of a function. Raises NotDecoratable for what cannot be gated."""
    if effect not in EFFECTS:
        raise ValueError(f"effect is 'read' or 'write', not {effect!r}")
    _refuse_generators(function)
    return GatedTool(
        name=name,
        function=function,
        effect="read" if effect == "read" else "write",
        plan=plan,
        shape=Shape.of(name, function, skipped=plan.parameters.skipped),
        describe=describe,
        undo=undo,
        tool_class=tool_class,
        wait=wait,
        known=_closed_sets(function),
    )


def _refuse_generators(function: Callable[..., Any]) -> None:
    call = inspect.getattr_static(type(function), "__call__", None)
    for is_such in (inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        if is_such(function) or is_such(call):
            raise NotDecoratable("tool", function, why=_IN_PIECES)
    if getattr(function, "__code__", None) in _MANAGED:
        raise NotDecoratable("tool", function, why=f"a call makes a context manager: {_IN_PIECES}")


def _closed_sets(function: Callable[..., Any]) -> frozenset[str]:
    """Return the parameters whose values are chosen from a list, which nobody has to invent."""
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
    return tool if receiver is _NOBODY or not tool.needs_receiver else tool.on(receiver)


class ToolSet:
    """The tools that one gate dispatches to, by name.

    What was decorated has its class. Plain functions get theirs here, by the list they are in:
    never by their name. A function without a class is known, and refused.
    """

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
            self._add(
                function_spec.name_of(cast("Callable[..., Any]", one)) if tool is None else tool
            )
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

    def telling(self, attributes: Mapping[str, str | bool]) -> ToolSet:
        """Return the set with more to be said of every call, on its span."""
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
    plan = function_spec.tool_plan(
        function,
        receives=False,
        name=None,
        description=None,
        call_id=None,
        capture_input=True,
        capture_output=True,
    )
    return make_tool(function, plan, name=function_spec.name_of(function), effect=effect)


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
