"""Users as bodies of the API."""

from __future__ import annotations

from typing import Annotated

from hansard_store.bodies import Answer, Body, Description, Page, body_of, usd
from hansard_store.runs.users import NameScore, UserDay, UserItem
from hansard_store.times import time_text
from hansard_web.api.bodies import TokensBody, tokens_body


class UserScore(Body):
    """The numeric scores of one name."""

    name: str
    value: Annotated[float, Description("their mean")]
    count: int


class UserBody(Body):
    """A user, summed over the runs of the period that name the id."""

    user_id: str
    runs: int
    failed_runs: Annotated[int, Description("runs of status error")]
    error_rate: Annotated[float, Description("failed_runs / runs")]
    model_calls: int
    tokens: Annotated[TokensBody | None, Description("input and output; other parts are null")]
    cost_usd: float | None
    conversations: int
    score: Annotated[float | None, Description("the mean of all numeric scores")]
    scores: Annotated[list[UserScore], Description("by name, those with the most scores first")]
    agents: list[str]
    first_seen_at: Annotated[str, Description("when the first run started")]
    last_seen_at: Annotated[str, Description("the latest end of a run")]


class UserList(Page):
    items: list[UserBody]


class UserDayBody(Body):
    day: Annotated[str, Description("2026-01-31, UTC")]
    runs: int
    failed_runs: int
    tokens: int
    cost_usd: float | None


class User(UserBody, Answer):
    days: Annotated[list[UserDayBody], Description("on which runs started, newest first")]
    conversation_ids: Annotated[list[str], Description("the newest 20")]


def user_body(user: UserItem) -> UserBody:
    """Return a user as lists show one."""
    return body_of(
        UserBody,
        user,
        tokens=tokens_body(user.tokens),
        scores=[_score_body(one) for one in user.scores],
        first_seen_at=str(time_text(user.first_seen_ns)),
        last_seen_at=str(time_text(user.last_seen_ns)),
    )


def day_body(day: UserDay) -> UserDayBody:
    """Return one day of a user."""
    return body_of(UserDayBody, day, cost_usd=usd(day.cost_usd_nano))


def _score_body(score: NameScore) -> UserScore:
    return body_of(UserScore, score)
