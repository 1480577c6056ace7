"""What goes wrong while a call is recorded stays out of the call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from hansard._runtime.warnings import warn_once

_P = ParamSpec("_P")
_T = TypeVar("_T")


def observing(function: Callable[_P, _T]) -> Callable[_P, _T | None]:
    """Make a function that never raises: each kind of problem is logged once, and None returned."""

    @functools.wraps(function)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _T | None:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            tell(function.__qualname__, error)
            return None

    return guarded


def tell(doing: str, error: BaseException) -> None:
    """Warn of a problem; only its kind and location: a message may hold recorded content."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    code = None if trace is None else trace.tb_frame.f_code
    where = "?" if trace is None or code is None else f"{code.co_filename}:{trace.tb_lineno}"
    kind = type(error).__name__
    warn_once(
        f"clients {doing} {kind}",
        "a call of a model was not recorded whole: %s in %s, at %s; the program is not affected",
        kind,
        doing,
        where,
    )
