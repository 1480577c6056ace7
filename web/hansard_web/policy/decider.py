"""Asking the policy: every answer is recorded before it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from hansard_compiler.calls import Json
from hansard_compiler.errors import NotFoundError
from hansard_compiler.policy.checks import PolicyCheck
from hansard_compiler.policy.rules import Effect
from hansard_store.content.retention import Retention
from hansard_store.policy.checks import check_row, record_check
from hansard_store.runs.open_steps import RunPlace, find_run_place
from hansard_store.runs.queries import find_trace_id
from hansard_store.steps.queries import get_step
from hansard_web.app.site import Site
from hansard_web.policy.bodies import PolicyInput
from hansard_web.policy.service import PolicyService


@dataclass(frozen=True, slots=True)
class _Told:
    """The run a check belongs to; nothing where it belongs to none."""

    trace_id: bytes | None = None
    span_id: bytes | None = None
    run: RunPlace | None = None

    @property
    def agent(self) -> str | None:
        return self.run.agent_name if self.run else None


@dataclass(frozen=True, slots=True)
class PolicyDesk:
    """Where a server is asked about policy: one for an app."""

    site: Site
    book: PolicyService
    retention: Retention

    def check(self, asked: PolicyInput, *, now_ns: int) -> Json:
        """Decide, record, answer: in this order. What cannot be recorded is not answered."""
        told = self._told(asked, now_ns=now_ns)
        current = self.book.in_force()
        check = asked.check(current.policy, agent=told.agent)
        row = check_row(self.retention, check, now_ns=now_ns)
        number = record_check(self.site.folder, row, trace_id=told.trace_id, span_id=told.span_id)
        return {
            "check_id": number,
            "policy_version": current.version,
            "run_id": told.trace_id.hex() if told.trace_id else None,
            "step_id": _step_id(told),
            **decision_body(check.json(), check),
        }

    def explain(self, asked: PolicyInput) -> Json:
        """Return how every rule comes out; nothing is recorded."""
        told = self._told(asked, now_ns=0)
        current = self.book.in_force()
        found = asked.explained(current.policy, agent=told.agent)
        check = asked.check(current.policy, agent=told.agent)
        return {
            "decision": decision_body(found["decision"], check),
            "rules": found["rules"],
            "policy_version": current.version,
        }

    def _told(self, asked: PolicyInput, *, now_ns: int) -> _Told:
        if asked.run_id is None:
            return _Told()
        with self.site.readers.read() as connection:
            trace_id = find_trace_id(connection, asked.run_id)
            run = find_run_place(connection, trace_id)
            if asked.step_id is None:
                return _Told(trace_id, run=run)
            step = get_step(connection, asked.step_id, now_ns=now_ns)
        if step.run_id != trace_id.hex():
            raise NotFoundError("step of this run", asked.step_id)
        return _Told(trace_id, bytes.fromhex(step.span_id), run)


def decision_body(told: Json, check: PolicyCheck) -> Json:
    """Return a decision with the one word that programs ask for first."""
    return {**told, "allowed": check.effect is Effect.ALLOW and not check.obligations}


def make_desk(site: Site) -> PolicyDesk:
    """Return the policy of an app; raises PolicyRuleError where a file of rules cannot be used."""
    return PolicyDesk(
        site,
        PolicyService(site.folder, site.readers.read, site.settings.policy),
        Retention.of(site.folder, site.settings.retention),
    )


def _step_id(told: _Told) -> str | None:
    if told.trace_id is None or told.span_id is None:
        return None
    return f"{told.trace_id.hex()}-{told.span_id.hex()}"


# async: see `site_of`.
async def desk_of(request: Request) -> PolicyDesk:
    """Return the policy of the app that serves a request."""
    desk: PolicyDesk = request.app.state.desk
    return desk


PolicyDeskDep = Annotated[PolicyDesk, Depends(desk_of)]
