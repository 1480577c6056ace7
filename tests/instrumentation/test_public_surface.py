"""What `import hansard` offers: all names are there, async forms are named as their plain ones."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

import hansard


def test_every_public_name_is_there_and_listed() -> None:
    assert dir(hansard) == sorted(hansard.__all__)
    assert all(getattr(hansard, name) is not None for name in hansard.__all__)


def test_what_init_returns_is_public() -> None:
    assert f"{hansard.Recorder.__module__}.{hansard.Recorder.__qualname__}" == "hansard.Recorder"


@pytest.mark.parametrize("name", ["CallRefused", "GateError", "HansardError", "NotApproved"])
def test_errors_that_programs_catch_are_those_of_the_module(name: str) -> None:
    assert getattr(hansard, name) is getattr(hansard.errors, name)


@pytest.mark.parametrize(
    "owner", [hansard, hansard.approvals, hansard.Gate, hansard.chat.ChatGate, hansard.Transcript]
)
def test_an_async_form_has_an_a_before_the_name_of_the_plain_one(owner: ModuleType | type) -> None:
    names = [name for name in getattr(owner, "__all__", dir(owner)) if not name.startswith("_")]
    found = {name for name in names if inspect.iscoroutinefunction(getattr(owner, name))}

    assert {name for name in found if name[:1] != "a" or name[1:] not in names} == set()
