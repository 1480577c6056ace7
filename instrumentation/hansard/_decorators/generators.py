"""Generators with a span around them: open from the first value requested to the last, or to the
moment it is closed.

The span is the current one only while the generator's body runs. The consumer never sees it, and
what the body opens across a `yield` is current again when the body goes on.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from functools import partial
from typing import Any, Generic, TypeVar

from hansard import semconv
from hansard._tracing.observation import Observation, log_failure
from hansard._tracing.serialization import dumps, to_json

GeneratorT = TypeVar("GeneratorT", bound=Generator[Any, Any, Any] | AsyncGenerator[Any, Any])
_MAX_ITEMS = 10_000  # recorded of the yielded items; all are counted


class _Yielded:
    """What a generator yielded, as JSON made at once: the consumer may change the objects.

    Pieces of text, which cannot change, are stored as they are and joined at the end.
    """

    __slots__ = ("_left", "_pieces", "_texts", "count")

    def __init__(self, most_bytes: int) -> None:
        self._left = most_bytes
        self._pieces: list[str] = []
        self._texts: list[str] | None = None  # from the first item on that is no text
        self.count = 0

    def add(self, item: Any) -> None:
        self.count += 1
        if self._left <= 0 or self.count > _MAX_ITEMS:
            return
        if self._texts is None and type(item) is str:
            piece = item if len(item) <= self._left else item[: self._left]
            self._pieces.append(piece)
            self._left -= len(piece)
            return
        if self._texts is None:
            self._texts = [to_json(piece) for piece in self._pieces]
        text = to_json(item, max_bytes=self._left)
        self._texts.append(text)
        self._left -= len(text)

    def json(self, returned: Any) -> str:
        """Return the output: pieces of text joined, other items as a list."""
        shown = self._text() if self._texts is None else f"[{','.join(self._texts)}]"
        if returned is None:
            return shown
        return f'{{"yielded":{shown},"returned":{to_json(returned, max_bytes=self._left)}}}'

    def _text(self) -> str:
        left_out = "‹cut›" if self._left <= 0 or self.count > _MAX_ITEMS else ""
        return dumps("".join(self._pieces) + left_out) if self._pieces else "[]"


class _Observed(Generic[GeneratorT]):
    """What both kinds of generators share: their span, and what they yielded."""

    def __init__(
        self, make: Callable[[], GeneratorT], observed: Observation, output_key: str | None
    ) -> None:
        self._observed = observed
        self._key = output_key if observed.is_recording else None
        self._yielded = _Yielded(observed.most_bytes)
        observed.enter()
        try:
            self._generator = make()
        except BaseException as error:
            self._failed(error)
            raise
        observed.leave()

    def _passed(self, item: Any) -> None:
        self._observed.pause()
        if self._key is not None:
            try:
                self._yielded.add(item)
            except Exception as error:
                log_failure("items", error)

    def _failed(self, error: BaseException) -> None:
        self._over(partial(self._observed.fail, error))

    def _over(self, end: Callable[[], None], returned: Any = None) -> None:
        """Leave the span, record what was yielded and returned, and end it."""
        self._observed.leave()
        if self._key is not None and (self._yielded.count or returned is not None):
            self._observed.put_text(self._key, self._yielded.json(returned))
            self._observed.span.set_attribute(semconv.OUTPUT_ITEMS, self._yielded.count)
        end()


class ObservedGenerator(_Observed[Generator[Any, Any, Any]], Generator[Any, Any, Any]):
    """A generator whose body runs inside a span; for `yield from`."""

    def send(self, value: Any, /) -> Any:
        return self._resume(lambda: self._generator.send(value))

    def throw(self, error: Any, /, *more: Any) -> Any:
        return self._resume(lambda: self._generator.throw(error, *more))

    def close(self) -> None:
        self._observed.enter()
        try:
            self._generator.close()
        except BaseException as error:
            self._failed(error)
            raise
        self._over(self._observed.cancel)

    def _resume(self, step: Callable[[], Any]) -> Any:
        self._observed.enter()
        try:
            item = step()
        except StopIteration as stop:
            self._over(self._observed.end, stop.value)
            raise
        except BaseException as error:
            self._failed(error)
            raise
        self._passed(item)
        return item


def begun(generator: AsyncGenerator[Any, Any]) -> Awaitable[Any]:
    """Return the first step of an async generator that is read by a decorated one.

    The event loop does not learn of it. When the loop ends, it closes all the generators it knows
    at once; the outer one closes the inner one, which must not be closing already.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=None, finalizer=None)
    try:
        return generator.asend(None)
    finally:
        sys.set_asyncgen_hooks(*hooks)


class ObservedAsyncGenerator(_Observed[AsyncGenerator[Any, Any]]):
    """The same for async generators; `decorators` has the loop that drives it."""

    async def begin(self) -> Any:
        """Run to the first value."""
        return await self._resume(lambda: begun(self._generator))

    async def asend(self, value: Any) -> Any:
        return await self._resume(lambda: self._generator.asend(value))

    async def athrow(self, error: BaseException) -> Any:
        return await self._resume(lambda: self._generator.athrow(error))

    async def aclose(self) -> None:
        self._observed.enter()
        try:
            await self._generator.aclose()
        except BaseException as error:
            self._failed(error)
            raise
        self._over(self._observed.cancel)

    async def _resume(self, step: Callable[[], Any]) -> Any:
        self._observed.enter()
        try:
            item = await step()
        except StopAsyncIteration:
            self._over(self._observed.end)
            raise
        except BaseException as error:
            self._failed(error)
            raise
        self._passed(item)
        return item
