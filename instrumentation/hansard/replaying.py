"""Making a recorded model call again, from a program.

    answer = run.call_model(compiled)
    again = hansard.replay(answer, n=5)                        # the very same bytes, five times
    other = hansard.replay(answer, token_budget=2_000, remove=["docs/large.md"])
    print(again.spread["different"], other.comparison["output"]["is_empty"])

The server makes it, with the server's keys; in embedded mode this process does, with its own. What
was recorded so far is sent first. Unlike observing this raises: a replay was asked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from hansard import _state
from hansard.answer import ModelAnswer
from hansard.errors import EmbeddedMissing, ReplayUnavailable
from hansard.step import Step
from hansard_compiler.calls import Json
from hansard_compiler.errors import NotFoundError
from hansard_compiler.replay.refusals import NotReplayable, Reason
from hansard_compiler.retention import RetentionMode

if TYPE_CHECKING:
    from hansard.config import Settings
    from hansard.gating.http_client import Answer

GROUP: Final = "hansard.replay"
_ROUTE: Final = "/v1/replay"
_WAIT_S: Final = 50.0  # of one request; a replay may take many


class Replay:
    """A replay as it stands; `body` is what `GET /v1/replay/{id}` answers."""

    def __init__(self, body: Json) -> None:
        self.body = body

    def __getattr__(self, name: str) -> Any:
        """Return a field of the body: `state`, `run_id`, `notes`, `spread`, `comparison` …"""
        try:
            return self.__dict__["body"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def is_done(self) -> bool:
        return bool(self.body["state"] == "done")

    @property
    def is_same_request(self) -> bool:
        """Whether the bytes that were sent are the recorded ones."""
        return bool(self.body["same_request"])

    def __repr__(self) -> str:
        return f"<Replay {self.body['short_id']} {self.body['mode']} {self.body['state']}>"


def replay(
    step: str | Step | ModelAnswer,
    *,
    recorded: bool = False,
    forward: bool = False,
    n: int = 1,
    model: str | None = None,
    provider: str | None = None,
    token_budget: int | None = None,
    response_reserve: int | None = None,
    weights: Mapping[str, float] | None = None,
    policy: Iterable[Mapping[str, Any]] | None = None,
    remove: Iterable[str] = (),
    mutations: Iterable[Mapping[str, Any]] = (),
    notes: str | None = None,
    elsewhere: bool = False,
    script: Mapping[str, Any] | None = None,
    timeout_s: float = 600.0,
) -> Replay:
    """Make a model call again and wait until that has ended.

    `step` is a step's id, or the answer of `call_model`. Without a change the recorded bytes are
    sent again; `recorded` answers from the recording and sends nothing; `forward` goes on through
    the later turns of the run. `model`, `provider`, `token_budget`, `response_reserve`, `weights`,
    `policy` and `remove` (ids of items) are the common changes, `mutations` any of them, in order.

    Raises NotReplayable with a reason, ReplayUnavailable where nobody can make it, NotFoundError.
    """
    changes = [
        *_changes(model, provider, token_budget, response_reserve, weights, policy, remove),
        *(dict(one) for one in mutations),
    ]
    body: Json = {
        "step_id": _step_id(step),
        "mode": "forward" if forward else None,
        "recorded": recorded,
        "mutations": changes,
        "n": n,
        "notes": notes,
        "elsewhere": elsewhere,
        "script": None if script is None else dict(script),
        "timeout_s": timeout_s,
    }
    return Replay(_made(body, timeout_s * n))


def _changes(
    model: str | None,
    provider: str | None,
    token_budget: int | None,
    response_reserve: int | None,
    weights: Mapping[str, float] | None,
    policy: Iterable[Mapping[str, Any]] | None,
    remove: Iterable[str],
) -> list[Json]:
    told: list[Json] = []
    if provider is not None:
        told.append({"op": "set_provider", "provider": provider})
    if model is not None:
        told.append({"op": "set_model", "model": model})
    budget = {"token_budget": token_budget, "response_reserve": response_reserve}
    known = {name: value for name, value in budget.items() if value is not None}
    if known:
        told.append({"op": "set_budget", **known})
    if weights is not None:
        told.append({"op": "set_weights", "weights": dict(weights)})
    if policy is not None:
        told.append({"op": "set_policy", "rules": [dict(rule) for rule in policy]})
    ids = [remove] if isinstance(remove, str) else remove
    return [*told, *({"op": "remove_item", "item_id": one} for one in ids)]


def _step_id(step: str | Step | ModelAnswer) -> str:
    if isinstance(step, ModelAnswer):
        step = step.kept.step_id
    elif isinstance(step, Step):
        step = step.step_id or ""
    if not isinstance(step, str) or not step:
        raise NotReplayable(Reason.NOT_RECORDED, "the call was not recorded")
    return step


def _made(body: Json, timeout_s: float) -> Json:
    """Make a replay where this process's record is kept."""
    from hansard.setup import flush

    settings = _state.settings()
    if settings is None:
        from hansard.config import load_settings

        settings = load_settings()
    flush()
    if settings.embedded:
        open_replays = _find()
        return open_replays(settings.data, retention=settings.retention, body=body)
    return _asked(settings, body, timeout_s)


# ---- in this process


class MakeReplay(Protocol):
    """The entry point: make a replay over a store, and return its body. Raises HansardError."""

    def __call__(self, data: Path, *, retention: RetentionMode, body: Json) -> Json: ...


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


def _asked(settings: Settings, body: Json, timeout_s: float) -> Json:
    from hansard.gating.errors import GateUnavailable
    from hansard.gating.http_client import HttpClient

    try:
        client = HttpClient.of(settings)
        try:
            found = _answered(client.post(_ROUTE, body), str(body["step_id"]))
            until_s = time.monotonic() + timeout_s
            while found["state"] == "running" and time.monotonic() < until_s:
                path = f"{_ROUTE}/{found['replay_id']}?wait={_WAIT_S:.0f}"
                found = _answered(client.get(path, wait_s=_WAIT_S), str(body["step_id"]))
        finally:
            client.close()
    except GateUnavailable as error:
        raise ReplayUnavailable(f"no replay can be made by {settings.endpoint}: {error}") from error
    return found


def _answered(answer: Answer, step_id: str) -> Json:
    """Return a body, or raise what the server says."""
    from hansard.gating.http_client import error_of

    if answer.is_ok:
        return answer.body
    code, message, details = error_of(answer)
    if code == NotReplayable.code:
        raise _refusal(message, details)
    if code == NotFoundError.code:
        raise NotFoundError("step", step_id)
    raise ReplayUnavailable(f"the server says {code}: {message}")


def _refusal(message: str, details: Json) -> NotReplayable:
    reasons = {one.value: one for one in Reason}
    reason = reasons.get(str(details.pop("reason", "")), Reason.INTERNAL)
    replay_id = details.pop("replay_id", None)
    refusal = NotReplayable(reason, message.removeprefix(f"{reason.meaning}: "), **details)
    refusal.replay_id = replay_id if isinstance(replay_id, str) else None
    return refusal
