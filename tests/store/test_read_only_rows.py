"""Rows that the store returns are read-only, at every depth, and say so where one is changed."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import json
import pickle
import pkgutil
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from google.protobuf.message import Message
from pydantic import BaseModel

import hansard_store
from hansard_store.approvals.rows import ApprovalFilter, list_approvals
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.events import read_events
from hansard_store.database.readers import open_reader
from hansard_store.database.stored_json import (
    ReadOnlyDict,
    ReadOnlyList,
    ReadOnlyRowError,
    read_only,
)
from hansard_store.memory.queries import MemoryFilter, list_memories
from hansard_store.runs.filters import RunFilter
from hansard_store.runs.queries import list_runs
from tests.store.accounts import proposal
from tests.store.memory_maker import MemoryMaker
from tests.store.task_maker import task_maker

# Readers of JSON for programs build a new document for each caller; services are no rows.
_DOCUMENTS = ("_json",)
# Neither is a query that is being built, a sum that is being added up, nor an error.
_SERVICES = {
    "Reports", "DataFolder", "GraphPart", "RunQuery", "Repeats", "SubtreeUsage", "Tallies", "Tally",
    "UndecodableMessage",
}  # fmt: skip


def readers() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every public function of the store that reads through a connection."""
    for found in pkgutil.walk_packages(hansard_store.__path__, "hansard_store."):
        module = importlib.import_module(found.name)
        for name, function in vars(module).items():
            is_own = inspect.isfunction(function) and function.__module__ == found.name
            if is_own and not name.startswith("_") and not name.endswith(_DOCUMENTS):
                first = next(iter(inspect.signature(function).parameters), None)
                if first == "connection":
                    yield f"{found.name}.{name}", function


def types_in(hint: Any) -> Iterator[type]:
    """Yield the classes that a type names."""
    if isinstance(hint, type) and not isinstance(hint, types.GenericAlias):
        yield hint
    for part in typing.get_args(hint):
        yield from types_in(part)


def row_types() -> dict[type, str]:
    """Return the classes of rows, those inside of rows too, each with a reader that returns it."""
    found: dict[type, str] = {}
    waiting = [
        (kind, name)
        for name, function in readers()
        for kind in types_in(typing.get_type_hints(function).get("return"))
    ]
    while waiting:
        kind, name = waiting.pop()
        is_ours = kind.__module__.startswith(("hansard_store", "hansard_compiler"))
        if not is_ours or kind in found or kind.__name__ in _SERVICES:
            continue
        found[kind] = name
        if dataclasses.is_dataclass(kind):
            hints = typing.get_type_hints(kind)
            waiting += [(one, name) for hint in hints.values() for one in types_in(hint)]
    return found


@pytest.mark.covers("DI-29")
def test_every_row_of_a_public_reader_is_frozen() -> None:
    def is_frozen(kind: type) -> bool:
        if dataclasses.is_dataclass(kind):
            return bool(kind.__dataclass_params__.frozen)  # type: ignore[attr-defined]
        if issubclass(kind, BaseModel):
            return bool(kind.model_config.get("frozen"))
        return issubclass(kind, (tuple, str, int, Message))

    found = row_types()

    assert len(found) > 60
    assert [f"{kind.__name__} of {at}" for kind, at in found.items() if not is_frozen(kind)] == []


@pytest.mark.covers("DI-29")
def test_no_field_of_a_row_is_declared_as_something_that_changes() -> None:
    found = {
        f"{kind.__name__}.{name}"
        for kind in row_types()
        if dataclasses.is_dataclass(kind)
        for name, hint in typing.get_type_hints(kind).items()
        for one in (hint, *typing.get_args(hint))
        if typing.get_origin(one) in (list, dict, set) and typing.get_args(one) != (str, Any)
    }

    assert found == set()


def parts_of(value: Any) -> Iterator[Any]:
    """Yield what a row is made of."""
    yield value
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from parts_of(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from parts_of(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from parts_of(one)


@pytest.mark.covers("DI-29")
def test_rows_that_were_read_hold_nothing_that_can_be_changed(
    tmp_path: Path, desk: ApprovalService
) -> None:
    memory = MemoryMaker(tmp_path / "data")
    memory.write({"a": [1, {"b": 2}]}, metadata={"k": ["v"]}, tags=["x"])
    memory.close()
    desk.propose(proposal())
    connection = open_reader(memory.folder)
    with task_maker(tmp_path / "other") as failing:
        failing.fail_often(5)
        failing.detect()
        rows = [
            *list_memories(connection, MemoryFilter(), now_ns=memory.now_ns).items,
            *list_approvals(connection, ApprovalFilter()),
            *read_events(connection),
            *failing.tasks(),
            *list_runs(failing.store.db, RunFilter(), now_ns=failing.now_ns, limit=5).items,
        ]
    connection.close()

    changeable = [
        (type(row).__name__, type(part).__name__)
        for row in rows
        for part in parts_of(row)
        if type(part) in (dict, list, set, bytearray)
    ]
    assert len({type(row) for row in rows}) == 5
    assert changeable == []
    for row in rows:
        name = dataclasses.fields(row)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(row, name, None)


@pytest.mark.covers("DI-29")
@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.__setitem__("a", 1),
        lambda row: row.update(a=1),
        lambda row: row.pop("list"),
        lambda row: row.clear(),
        lambda row: row.setdefault("new", 1),
        lambda row: row.__delitem__("list"),
        lambda row: row["list"].append(1),
        lambda row: row["list"].__setitem__(0, 1),
        lambda row: row["list"].sort(),
        lambda row: row["list"][1].update(x=1),
    ],
)
def test_to_change_one_is_an_error_at_that_place(change: Callable[[Any], None]) -> None:
    row = read_only({"list": [1, {"deep": []}], "text": "x"})

    with pytest.raises(ReadOnlyRowError, match="change a copy"):
        change(row)
    assert row == {"list": [1, {"deep": []}], "text": "x"}


def test_copies_can_be_changed_and_every_encoder_takes_it() -> None:
    row = read_only({"list": [1, {"deep": [2]}]})

    deep, flat, revived = copy.deepcopy(row), dict(row), pickle.loads(pickle.dumps(row))
    deep["list"][1]["deep"].append(3)
    flat["new"] = 1
    revived["new"] = 1

    assert isinstance(row, ReadOnlyDict)
    assert isinstance(row["list"], ReadOnlyList)
    assert deep == {"list": [1, {"deep": [2, 3]}]}
    assert json.dumps(row) == '{"list": [1, {"deep": [2]}]}'
    assert orjson.dumps(row) == b'{"list":[1,{"deep":[2]}]}'
