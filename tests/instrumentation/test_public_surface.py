"""What `import hansard` offers: public names, one tree of errors, one unit of durations."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, get_args

import pytest

import hansard
from hansard import results
from hansard.chat import ChatGate
from hansard.errors import ConfigError
from tests.instrumentation.gating.gates import desk

MODULES = [
    hansard.approvals,
    hansard.chat,
    hansard.errors,
    hansard.memory,
    hansard.results,
    hansard.testing,
    hansard.transcripts,
]
# Words in names of durations.
DURATIONS = {"timeout", "wait", "expires", "delay", "duration", "ttl", "interval", "ms"}


def public_functions() -> Iterator[tuple[str, Any]]:
    """Yield each public function and method with its name."""
    for owner in (hansard, *MODULES):
        for name in getattr(owner, "__all__", ()):
            found = getattr(owner, name)
            if inspect.isfunction(found):
                yield f"{owner.__name__}.{name}", found
            elif inspect.isclass(found) and not issubclass(found, Exception):
                for method, function in inspect.getmembers(found, inspect.isfunction):
                    if not method.startswith("_") or method == "__init__":
                        yield f"{owner.__name__}.{name}.{method}", function


def test_every_public_name_is_there_and_listed() -> None:
    assert dir(hansard) == sorted(hansard.__all__)
    assert all(getattr(hansard, name) is not None for name in hansard.__all__)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_name_that_a_public_module_lists_is_there(module: ModuleType) -> None:
    assert [name for name in getattr(module, "__all__", ()) if not hasattr(module, name)] == []


def test_no_public_object_says_that_it_is_of_a_private_module() -> None:
    found = {
        name: getattr(hansard, name).__module__
        for name in hansard.__all__
        if inspect.isfunction(getattr(hansard, name)) or inspect.isclass(getattr(hansard, name))
    }

    assert {name: module for name, module in found.items() if "._" in module} == {}


def test_what_init_returns_is_public() -> None:
    assert f"{hansard.Recorder.__module__}.{hansard.Recorder.__qualname__}" == "hansard.Recorder"
    assert hansard.Recorder.__doc__


@pytest.mark.parametrize("name", ["CallRefused", "ConfigError", "GateError", "HansardError",
                                  "NotApproved"])  # fmt: skip
def test_errors_that_programs_catch_are_those_of_the_module(name: str) -> None:
    assert getattr(hansard, name) is getattr(hansard.errors, name)


def test_all_errors_are_of_one_tree_that_the_module_shows() -> None:
    found = {
        one.__name__: one
        for one in (getattr(hansard.errors, name) for name in dir(hansard.errors))
        if inspect.isclass(one) and issubclass(one, Exception)
    }
    tree = re.findall(r"(?:├──|└──|\() ?(\w+)", str(hansard.errors.__doc__))

    assert set(tree) | {"HansardError", "RunsFailed"} == set(found)
    assert [one for one in found.values() if not issubclass(one, hansard.HansardError)] == [
        hansard.errors.RunsFailed
    ]


@pytest.mark.parametrize(
    "owner", [hansard, hansard.approvals, hansard.Gate, hansard.chat.ChatGate, hansard.Transcript]
)
def test_an_async_form_has_an_a_before_the_name_of_the_plain_one(owner: ModuleType | type) -> None:
    names = [name for name in getattr(owner, "__all__", dir(owner)) if not name.startswith("_")]
    found = {name for name in names if inspect.iscoroutinefunction(getattr(owner, name))}

    assert {name for name in found if name[:1] != "a" or name[1:] not in names} == set()


# ---- durations


def test_every_duration_among_the_parameters_says_that_it_is_seconds() -> None:
    parameters = {
        f"{name}({parameter}=)"
        for name, function in public_functions()
        for parameter in inspect.signature(function).parameters
        if DURATIONS & set(parameter.split("_"))
    }

    assert {"hansard.init(timeout_s=)", "hansard.init(export_delay_s=)"} <= parameters
    assert [one for one in parameters if not one.endswith("_s=)")] == []


def test_durations_are_numbers_of_seconds_or_timedeltas() -> None:
    gate = hansard.gate(expires_in_s=timedelta(minutes=5), wait_s=2)

    assert (gate.expires_in_s, gate.wait_s) == (300.0, 2.0)
    assert hansard.gate(wait_s=math.inf).wait_s == math.inf


@pytest.mark.parametrize("wrong", [True, "5", -1, math.nan])
def test_what_is_no_duration_is_refused_by_its_name(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^wait_s is a "):
        hansard.gate(wait_s=wrong)
    with pytest.raises(ConfigError, match=r"^exit_timeout_s is a "):
        hansard.init(exit_timeout_s=wrong)


# ---- results of a gate


def test_results_of_a_gate_are_frozen_records_that_hansard_has_too() -> None:
    kinds = get_args(hansard.GateResult)

    assert isinstance(hansard.GateResult, UnionType)
    assert {kind.__name__ for kind in kinds} | {"GateResult"} == set(results.__all__)
    for kind in kinds:
        assert getattr(hansard, kind.__name__) is kind
        assert dataclasses.is_dataclass(kind)
        assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
        assert kind.for_model.__doc__ or kind.__mro__[1].for_model.__doc__


def test_a_chat_takes_how_long_an_action_waits_in_seconds(tmp_path: Path) -> None:
    channel = hansard.chat.TextChannel("talk", lambda text: None)

    with desk(tmp_path) as store:
        chat = ChatGate(
            channel, agent=str, decisions=store.decisions, expires_in_s=timedelta(hours=1)
        )

    assert chat.gate.expires_in_s == 3_600
