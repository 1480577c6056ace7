"""A limit of time for what a hook does, by the alarm of the process."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


class DeadlineExceeded(BaseException):
    """The time is over; no `except Exception` in between may swallow it."""


def end_after(seconds: float) -> None:
    """Have DeadlineExceeded raised after some time, in place of an earlier limit.

    Where there are no such signals, it is never raised.
    """
    import signal

    if not hasattr(signal, "setitimer"):
        return
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise DeadlineExceeded
