"""What a tool's result holds and has not run: a call with such a result has not ended.

Looked at is all that a result holds: containers of every built-in kind (dicts with their keys),
data classes, attrs and pydantic objects, named tuples, exceptions (arguments, causes, contexts,
notes, what a group holds), what futures that are done hold, iterators over these, and the
attributes of other objects, of classes and of modules; nearest first, within a bound. A result is
found unfinished by

- a coroutine that was not awaited to its end, or another awaitable;
- a future or task that is not done;
- a generator, of either kind, that was not read to its end;
- a context manager made of a generator (`@contextmanager`) that was not entered and left;
- `map`, `filter` and those of itertools that call a function with each value: whether they were
  read to their end cannot be seen.

Behind the attributes of an object that is none of these containers only a coroutine counts that
was not awaited yet: clients of all kinds hold tasks, locks and streams of their own.
Functions are values; what a result refers to by a name, a closure or a weak reference is not looked
at, nor what lies beyond the bound.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import itertools
import queue
import types
from collections import ChainMap, OrderedDict, UserDict, UserList, deque
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from hansard._tracing.serialization import is_future, is_pending, type_name

_MOST_VALUES: Final = 100_000  # looked at
_MOST_BEHIND: Final = 2_000  # of these, behind attributes of other objects
_MOST_PATH: Final = 120  # characters of a path

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
_FINISHED: Final = frozenset({dict, *_SEQUENCES})  # what such a value is has run; its parts may not
_HOLDING: Final = (
    types.SimpleNamespace, BaseException, ChainMap, UserDict, UserList, slice, types.GenericAlias,
)  # fmt: skip
# What an object holds in C, and shows under these names: read past the class of the program.
_SHOWN: Final = tuple(
    (name, vars(BaseException)[name]) for name in ("args", "__cause__", "__context__")
)


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """What has not run, and where in the result it is."""

    kind: str  # "coroutine", "map", the name of a class
    where: str  # "[2]", "['job'].task"; "" for the result itself


# How a part is reached from the value that holds it: an index, a key in a tuple of one, or text.
_Step = int | tuple[Any] | str
_Part = tuple[_Step, Any, bool]  # the step, the value, and whether it is behind attributes


class _Node(NamedTuple):
    """A value and how it is reached; the path is made of it only where it is reported."""

    value: Any
    holder: _Node | None
    step: _Step
    is_behind: bool  # the attributes of an object that is no container


def find_unfinished(result: Any) -> _Unfinished | None:
    """Return the nearest part of a result that has not run; None where all is there."""
    if type(result) in _PLAIN:
        return None
    nodes = deque([_Node(result, None, "", is_behind=False)])
    # Held beside their ids, so that no id is that of another value meanwhile.
    seen: dict[int, Any] = {id(result): result}
    left, left_behind = _MOST_VALUES, _MOST_BEHIND
    while nodes:
        node = nodes.popleft()
        if kind := _kind_of(node.value, is_behind=node.is_behind):
            return _Unfinished(kind, _path(node)[:_MOST_PATH])
        if left <= 0:
            continue
        for step, value, is_behind in _parts(node):
            if left <= 0 or (is_behind and left_behind <= 0):
                break
            left -= 1
            left_behind -= is_behind
            if type(value) not in _PLAIN and id(value) not in seen:
                seen[id(value)] = value
                nodes.append(_Node(value, node, step, is_behind))
    return None


def _path(node: _Node) -> str:
    """Return the path of a node: "['job'].task", "[2]"; "" for the result itself."""
    steps = []
    at: _Node | None = node
    while at is not None:
        steps.append(_step_text(at.step))
        at = at.holder
    return "".join(reversed(steps))


def _step_text(step: _Step) -> str:
    if isinstance(step, str):
        return step
    if isinstance(step, int):
        return f"[{step}]"
    [key] = step
    return f"[{repr(key)[:40] if type(key) in (str, int) else '…'}]"


def _kind_of(value: Any, *, is_behind: bool) -> str:
    """Return what an unfinished value is called; "" for any other."""
    kind = type(value)
    if kind in _FINISHED:
        return ""
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


def _parts(node: _Node) -> Iterator[_Part]:
    """Yield the parts of a value; runs no code of the program."""
    value, kind = node.value, type(node.value)
    try:
        if issubclass(kind, _CODE):
            return
        if issubclass(kind, _NAMESPACES):
            yield from _of_namespace(value, node)
            return
        if issubclass(kind, _ITERATORS):
            for one in gc.get_referents(value):
                yield "[…]", one, node.is_behind
            return
        if kind is types.MappingProxyType:
            yield from _of_mapping(value.items(), node)
            return
        if issubclass(kind, dict):
            yield from _of_mapping(dict.items(value), node)
        elif issubclass(kind, _SEQUENCES):
            base = next(one for one in _SEQUENCES if issubclass(kind, one))
            for number, one in enumerate(list(base.__iter__(value))):
                yield number, one, node.is_behind
        if kind is not dict and kind not in _SEQUENCES:
            yield from _of_object(value, kind, node)
    except Exception:  # a hostile class: what it does not show is not looked at
        return


def _of_namespace(value: Any, node: _Node) -> Iterator[_Part]:
    """Yield what a class or a module holds of its own and is no code."""
    if node.is_behind:
        return
    owner = type if issubclass(type(value), type) else types.ModuleType
    own: Mapping[str, Any] = vars(owner)["__dict__"].__get__(value)
    for name, one in list(own.items()):
        if type(one) not in _PLAIN and not issubclass(type(one), (*_CODE, *_NAMESPACES)):
            yield f".{name}", one, True


def _of_mapping(items: Iterable[tuple[Any, Any]], node: _Node) -> Iterator[_Part]:
    for key, one in list(items):
        yield (key,), one, node.is_behind
        if type(key) not in _PLAIN:
            yield ", a key", key, node.is_behind


def _of_object(value: Any, kind: type, node: _Node) -> Iterator[_Part]:
    is_behind = node.is_behind or not _has_fields(kind)
    for name, one in _attributes(value, kind):
        yield f".{name}", one, is_behind
    if is_future(value) and (ended := _ended(value)) is not None:
        yield ".result()", ended, node.is_behind


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
