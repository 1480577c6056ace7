"""Where a replay is made: by the server that is told of this process, or in its own store."""

from __future__ import annotations

import time
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from hansard._runtime import recorder as _state
from hansard.errors import EmbeddedMissing, ReplayUnavailable
from hansard_compiler.calls import Json
from hansard_compiler.errors import NotFoundError
from hansard_compiler.replay.errors import NotReplayable, Reason
from hansard_compiler.retention import RetentionMode

if TYPE_CHECKING:
    from hansard._backend.http_client import Answer
    from hansard._config.settings import Settings

GROUP: Final = "hansard.replay"
_ROUTE: Final = "/v1/replay"
_WAIT_S: Final = 50.0  # of one request; a replay may take many


def make(body: Json, timeout_s: float, *, goes_on: str | None = None) -> Json:
    """Make a replay where this process's record is kept; `goes_on` is one that stopped.

    Raises NotReplayable, ReplayUnavailable, NotFoundError.
    """
    from hansard._runtime.setup import flush

    settings = _state.settings()
    if settings is None:
        from hansard._config.settings import load_settings

        settings = load_settings()
    flush()
    if settings.embedded:
        made_here = _find()
        data, retention = settings.data, settings.retention
        return made_here(data, retention=retention, body=body, goes_on=goes_on)
    return _asked(settings, body, timeout_s, goes_on)


# ---- in this process


class MakeReplay(Protocol):
    """The entry point: make a replay over a store, and return its body. Raises HansardError."""

    def __call__(
        self, data: Path, *, retention: RetentionMode, body: Json, goes_on: str | None = None
    ) -> Json: ...


@cache
def _find() -> MakeReplay:
    missing = GROUP
    for entry in entry_points(group=GROUP):
        try:
            return cast(MakeReplay, entry.load())
        except ModuleNotFoundError as error:
            missing = error.name or str(error)
    raise EmbeddedMissing(missing)


# ---- by the server


def _asked(settings: Settings, body: Json, timeout_s: float, goes_on: str | None) -> Json:
    from hansard._backend.http_client import HttpClient
    from hansard.errors import GateUnavailable

    route = _ROUTE if goes_on is None else f"{_ROUTE}/{goes_on}/continue"
    what = ("step", str(body["step_id"])) if goes_on is None else ("replay", goes_on)
    try:
        client = HttpClient.of(settings)
        try:
            found = _answered(client.post(route, body), *what)
            until_s = time.monotonic() + timeout_s
            while found["state"] == "running" and time.monotonic() < until_s:
                path = f"{_ROUTE}/{found['replay_id']}?wait={_WAIT_S:.0f}"
                found = _answered(client.get(path, wait_s=_WAIT_S), *what)
        finally:
            client.close()
    except GateUnavailable as error:
        raise ReplayUnavailable(f"no replay can be made by {settings.endpoint}: {error}") from error
    return found


def _answered(answer: Answer, kind: str, wanted: str) -> Json:
    """Return a body, or raise what the server says."""
    from hansard._backend.http_client import error_of

    if answer.is_ok:
        return answer.body
    code, message, details = error_of(answer)
    if code == NotReplayable.code:
        raise _refusal(message, details)
    if code == NotFoundError.code:
        raise NotFoundError(kind, wanted)
    raise ReplayUnavailable(f"the server says {code}: {message}")


def _refusal(message: str, details: Json) -> NotReplayable:
    reasons = {one.value: one for one in Reason}
    reason = reasons.get(str(details.pop("reason", "")), Reason.INTERNAL)
    replay_id = details.pop("replay_id", None)
    refusal = NotReplayable(reason, message.removeprefix(f"{reason.meaning}: "), **details)
    refusal.replay_id = replay_id if isinstance(replay_id, str) else None
    return refusal
