"""Whether a call that raised may have had its effect all the same: a timeout is no failure.

The error itself shows less than what it came from: clients wrap the timeout of a socket in errors
of their own. So everything is looked at that an error was raised from or while handling, that it
holds in its arguments or attributes (`reason`), and that a group of errors has in it. Classes are
recognised by their names, so that no client has to be imported. `docs/gate.md` has the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from subprocess import TimeoutExpired
from typing import Any, Final

from hansard._tracing.observation import is_named
from hansard.errors import PendingResult

# Abandoned, or cut off after the request may have left: of the class itself or of one of its bases.
_CUT_OFF: Final = re.compile(
    r".*(Timeout|TimeOut|TimedOut)(Error|Exception|Expired|Exceeded)?"
    r"|TooSlowError|.*DeadlineExceeded(Error)?"
    r"|CancelledError|CanceledError|Cancelled|QueryCanceled(Error)?"
    r"|.*(Disconnected|Connection(Reset|Aborted|Closed|Lost|Dropped)|BrokenPipe)(Error|OK)?"
    r"|IncompleteRead(Error)?|RemoteProtocolError|ChunkedEncodingError|ClientPayloadError"
    r"|SSLEOFError|AutoReconnect"
)
# There was no connection yet, so nothing was sent.
_UNSENT: Final = re.compile(
    r".*Connect(Error|Timeout|TimeoutError)|ClientConnector\w*Error|ConnectionRefusedError"
    r"|NewConnectionError|NameResolutionError|gaierror|herror|PoolTimeout|EmptyPoolError"
)
# A connection failed: before or after something was sent, as the rest of the chain shows.
_CONNECTION: Final = re.compile(r".*ConnectionError|ProtocolError|NetworkError")
_EXITS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, PendingResult, TimeoutExpired)
# What a failed connection is made of: a socket's own errors, and the timeout of a loop around it.
_LOW: Final = frozenset({"builtins", "asyncio", "concurrent", "socket", "ssl", "anyio", "trio"})
_GRPC_CODES: Final = frozenset({"DEADLINE_EXCEEDED", "CANCELLED", "UNAVAILABLE"})
_RPC_ERROR: Final = frozenset({("grpc", "RpcError")})
_MOST: Final = 200  # errors of one chain


def may_have_run(error: BaseException, *, handled: BaseException | None = None) -> bool:
    """Whether it is unknown what a call had done by the time it raised.

    `handled` is what its caller was handling when the call began: Python hangs it onto every error
    of the call, and it says nothing of it.
    """
    is_unsent = is_connection = False
    for one, is_below in _chain(error, handled):
        if isinstance(one, _EXITS):
            return True
        names = _names(one)
        if _is_any(_UNSENT, names):
            is_unsent = True
        elif _is_any(_CUT_OFF, names) or _is_lost_call(one):
            if not is_below or type(one).__module__.partition(".")[0] not in _LOW:
                return True
        elif _is_any(_CONNECTION, names):
            is_connection = True
    return is_connection and not is_unsent


def _chain(
    error: BaseException, handled: BaseException | None
) -> Iterator[tuple[BaseException, bool]]:
    """Yield an error and all that it comes from, with whether it is below one of no connection."""
    left: list[tuple[BaseException, bool]] = [(error, False)]
    seen = set() if handled is None else {id(handled)}
    while left and len(seen) < _MOST:
        one, is_below = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one, is_below
        is_below = is_below or _is_any(_UNSENT, _names(one))
        left += ((other, is_below) for other in _parts(one))


def _parts(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        yield from error.exceptions
    held: list[Any] = [error.__cause__, error.__context__]
    try:
        held += [*error.args, *vars(error).values()]
    except Exception:  # a class that hides what it holds
        held = held[:2]
    for one in held:
        if isinstance(one, BaseException):
            yield one
        elif type(one) in (list, tuple):
            yield from (each for each in one if isinstance(each, BaseException))


def _names(error: BaseException) -> list[str]:
    return [kind.__name__ for kind in type(error).__mro__[:-1]]


def _is_any(pattern: re.Pattern[str], names: list[str]) -> bool:
    return any(pattern.fullmatch(name) for name in names)


def _is_lost_call(error: BaseException) -> bool:
    """Whether an error of gRPC has a status after which the call may have had its effect."""
    if not is_named(error, _RPC_ERROR):
        return False
    try:
        return error.code().name in _GRPC_CODES  # type: ignore[attr-defined]  # of a client's call
    except Exception:  # an error without a status
        return True
