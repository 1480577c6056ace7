"""Values as JSON: whatever they are, in bounds, without touching them."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import threading
import time
import types
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard._tracing.serialization import MAX_DEPTH, MAX_VALUES, to_json

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)


def opened(value: Any, **more: Any) -> Any:
    return json.loads(to_json(value, **more))


@given(PLAIN)
def test_plain_data_comes_back_the_same(value: Any) -> None:
    assert opened(value) == value


@given(PLAIN, st.integers(0, 200))
def test_the_text_is_valid_json_within_any_bound(value: Any, most: int) -> None:
    text = to_json(value, max_bytes=most)

    json.loads(text)
    text.encode()


@dataclasses.dataclass
class Order:
    number: int
    parts: list[Order] = dataclasses.field(default_factory=list)
    secret: str = dataclasses.field(default="hidden", repr=False)


@dataclasses.dataclass(slots=True, frozen=True)
class Slotted:
    number: int


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    number: int
    key: pydantic.SecretStr
    left_out: str = pydantic.Field("hidden", exclude=True)

    @property
    def surprise(self) -> str:
        raise AssertionError("properties are not called")


class Point(NamedTuple):
    x: int
    y: int


class Colour(enum.Enum):
    RED = "red"


UUID = uuid.UUID("12345678123456781234567812345678")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Order(1, [Order(2)]), {"number": 1, "parts": [{"number": 2, "parts": []}]}),
        (Slotted(1), {"number": 1}),
        (
            Model(number=1, key=pydantic.SecretStr("hidden"), more=[2]),  # type: ignore[call-arg]
            {
                "number": 1,
                "key": {"$type": "pydantic.types.SecretStr", "$repr": "SecretStr('**********')"},
                "more": [2],
            },
        ),
        (Point(1, 2), {"x": 1, "y": 2}),
        (Colour.RED, "red"),
        ({Colour.RED: 1, 2: 3, None: 4, True: 5, (1, 2): 6}, None),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        (collections.deque([1, 2]), [1, 2]),
        (collections.defaultdict(int, a=1), {"a": 1}),
        (frozenset({1}), [1]),
        (datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), "2026-01-02T00:00:00+00:00"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.timedelta(minutes=1), "0:01:00"),
        (decimal.Decimal("0.10"), "0.10"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (UUID, str(UUID)),
        (b"abc", {"$type": "bytes", "$bytes": 3, "$base64": "YWJj"}),
        (bytearray(5000), {"$type": "bytearray", "$bytes": 5000}),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (1 << 4000, 1 << 4000),
        ("half a pair: \ud83d", "half a pair: \ud83d"),
        (ValueError("no"), {"$type": "ValueError", "$repr": "ValueError('no')"}),
        (Order, {"$type": "type", "$repr": f"{__name__}.Order"}),
        (opened, {"$type": "function", "$repr": f"{__name__}.opened"}),
        (object.__new__(Slotted), {}),
    ],
)
def test_things_python_has_are_shown_as_people_expect(value: Any, shown: Any) -> None:
    if isinstance(value, dict) and shown is None:
        shown = {"red": 1, "2": 3, "null": 4, "true": 5, "(1, 2)": 6}

    assert opened(value) == shown


def test_what_json_has_no_form_for_is_shown_by_type_and_repr() -> None:
    class Thing:
        def __repr__(self) -> str:
            return "Thing()" * 1000

    shown = opened({"thing": Thing()})["thing"]

    assert shown["$type"].endswith(".Thing")
    assert shown["$repr"] == ("Thing()" * 1000)[:1000] + "…"


class Hostile:
    """An array in the style of numpy, and worse: everything that is asked of it raises."""

    def _refuse(self, *_: Any) -> Any:
        raise SystemExit("no")

    __getattr__ = __len__ = __bool__ = __iter__ = __eq__ = __hash__ = __repr__ = __str__ = _refuse
    __array__ = __index__ = __float__ = __getitem__ = __contains__ = _refuse
    __class__ = property(_refuse)


class HostileDict(dict[Any, Any]):
    __iter__ = __len__ = items = keys = __getitem__ = Hostile._refuse


class HostileList(list[Any]):
    __iter__ = __len__ = __getitem__ = Hostile._refuse


class HostileText(str):
    __len__ = __str__ = __getitem__ = Hostile._refuse


class HostilePath(pathlib.PurePosixPath):
    def __str__(self) -> str:
        raise SystemExit("no")


def class_of_hostile_metaclass() -> type:
    class HostileMeta(type):
        def __getattribute__(cls, name: str) -> Any:
            raise SystemExit(name)

    return HostileMeta("OfHostileMeta", (), {})


@pytest.mark.parametrize(
    "make",
    [
        Hostile,
        lambda: [Hostile(), {"a": Hostile()}],
        lambda: HostileDict(a=1),
        lambda: HostileList([1]),
        lambda: HostileText("text"),
        lambda: HostilePath("/a"),
        class_of_hostile_metaclass,
        lambda: object.__new__(class_of_hostile_metaclass()),
    ],
)
def test_objects_that_raise_whatever_is_asked_of_them_are_shown_all_the_same(make: Any) -> None:
    text = to_json({"good": 1, "hostile": make()})

    assert json.loads(text)["good"] == 1


def test_a_hostile_container_is_read_past_its_own_methods() -> None:
    assert opened([HostileDict(a=1), HostileList([1]), HostileText("text")]) == [
        {"a": 1},
        [1],
        "text",
    ]


def test_what_contains_itself_is_marked_and_what_is_shared_is_shown_twice() -> None:
    loop: list[Any] = [1]
    loop.append({"again": loop})
    shared = {"a": 1}

    assert opened(loop) == [1, {"again": "‹circular›"}]
    assert opened([shared, shared]) == [shared, shared]


def test_iterators_are_named_and_never_read() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 1

    counting = iter([1, 2, 3])

    async def later() -> None:
        raise AssertionError("never run")

    waiting = later()
    for value in (endless(), counting, waiting, map(str, counting), threading.Lock()):
        told = {"$type", "$repr"} | ({"$note"} if value is waiting else set())
        assert set(opened(value)) == told  # of a coroutine also that nobody awaited it

    assert list(counting) == [1, 2, 3]
    asyncio.run(_close(waiting))


async def _close(coroutine: Any) -> None:
    coroutine.close()


def test_a_huge_text_is_cut_and_says_so() -> None:
    started = time.process_time()

    shown = opened("x" * 50_000_000, max_bytes=1000)

    assert shown == "x" * 1000 + "‹cut: 49999000 characters more›"
    assert time.process_time() - started < 1


def test_a_huge_list_is_cut_and_says_so() -> None:
    shown = opened(list(range(1_000_000)))

    assert len(shown) <= MAX_VALUES
    assert shown[-1] == f"‹cut: {1_000_000 - len(shown) + 1} more›"


def test_a_deep_nest_is_cut_and_says_so() -> None:
    nest: list[Any] = []
    for _ in range(100_000):
        nest = [nest]

    assert f"‹deeper than {MAX_DEPTH} levels›" in to_json(nest)


def test_many_objects_with_long_reprs_are_cut_and_say_so() -> None:
    class Wordy:
        def __repr__(self) -> str:
            return "w" * 10_000

    text = to_json([Wordy() for _ in range(5_000)], max_bytes=100_000)

    assert len(text) < 200_000
    assert "‹cut: " in text


def test_a_container_that_another_thread_changes_is_shown() -> None:
    changing = {number: number for number in range(1000)}
    stop = threading.Event()

    def change() -> None:
        number = 1000
        while not stop.is_set():
            changing[number] = changing.pop(number - 1000)
            number += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(50):
            assert len(opened(changing)) >= 999
    finally:
        stop.set()
        thread.join()


def test_an_integer_that_python_refuses_to_write_is_named() -> None:
    assert opened([10**5000]) == ["‹integer of 16610 bits›"]


def test_what_happens_to_an_object_later_is_not_shown() -> None:
    items = [1]
    text = to_json(items)

    items.append(2)

    assert text == "[1]"
