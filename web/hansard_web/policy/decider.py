"""Policy decisions: every decision is recorded before it is returned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from hansard_compiler.calls import Json
from hansard_compiler.compile.models import Effect as EffectName
from hansard_compiler.errors import NotFoundError
from hansard_compiler.policy.checks import ReasonCode
from hansard_compiler.policy.facts import Action
from hansard_compiler.policy.rules import Effect
from hansard_store.bodies import Answer, Body, BodyT, Description, body_of
from hansard_store.content.retention import Retention
from hansard_store.policy.checks import check_row, record_check
from hansard_store.runs.open_steps import RunPlace, find_run_place
from hansard_store.runs.queries import find_trace_id
from hansard_store.steps.queries import get_step
from hansard_web.app.site import Site
from hansard_web.policy.bodies import PolicyInput
from hansard_web.policy.service import PolicyService
from hansard_web.principals.dependencies import of_app


class Decision(Body):
    """What rules decide. `obligations` are all that must be met before it is done or shown."""

    action: Action
    effect: EffectName
    allowed: Annotated[bool, Description("nothing stands against it now: no denial, no obligation")]
    reason_code: ReasonCode
    reason: str
    rule_id: str | None
    rules: list[dict[str, Any]]
    obligations: list[str]
    inputs: dict[str, Any]
    policy_hash: str


class Checked(Decision, Answer):
    """A check that was recorded under `check_id`."""

    check_id: int
    policy_version: int
    run_id: str | None
    step_id: str | None


class Explained(Answer):
    """A dry run: what would be decided, and how every rule came out."""

    decision: Decision
    rules: list[dict[str, Any]]
    policy_version: int


@dataclass(frozen=True, slots=True)
class _RunContext:
    """The run a check belongs to; nothing where it belongs to none."""

    trace_id: bytes | None = None
    span_id: bytes | None = None
    run: RunPlace | None = None

    @property
    def agent(self) -> str | None:
        return self.run.agent_name if self.run else None


@dataclass(frozen=True, slots=True)
class RecordingDecider:
    """The policy decisions of an app; one for each."""

    site: Site
    rules: PolicyService
    retention: Retention

    def check(self, request: PolicyInput, *, now_ns: int) -> Checked:
        """Decide, record, answer: in this order. What cannot be recorded is not answered."""
        context = self._context_of(request, now_ns=now_ns)
        current = self.rules.in_force()
        check = request.check(current.policy, agent=context.agent)
        row = check_row(self.retention, check, now_ns=now_ns)
        number = record_check(
            self.site.folder, row, trace_id=context.trace_id, span_id=context.span_id
        )
        return decision_body(
            Checked,
            check.json(),
            check_id=number,
            policy_version=current.version,
            run_id=context.trace_id.hex() if context.trace_id else None,
            step_id=_step_id(context),
        )

    def explain(self, request: PolicyInput) -> Explained:
        """Return how every rule comes out; nothing is recorded."""
        context = self._context_of(request, now_ns=0)
        current = self.rules.in_force()
        found = request.explained(current.policy, agent=context.agent)
        decision, rules = decision_body(Decision, found["decision"]), found["rules"]
        return body_of(Explained, decision=decision, rules=rules, policy_version=current.version)

    def _context_of(self, request: PolicyInput, *, now_ns: int) -> _RunContext:
        if request.run_id is None:
            return _RunContext()
        with self.site.readers.read() as connection:
            trace_id = find_trace_id(connection, request.run_id)
            run = find_run_place(connection, trace_id)
            if request.step_id is None:
                return _RunContext(trace_id, run=run)
            step = get_step(connection, request.step_id, now_ns=now_ns)
        if step.run_id != trace_id.hex():
            raise NotFoundError("step of this run", request.step_id)
        return _RunContext(trace_id, bytes.fromhex(step.span_id), run)


def decision_body(kind: type[BodyT], decision: Json, **more: Any) -> BodyT:
    """Return a decision with the one word that programs ask for first, and with `more`."""
    allowed = decision["effect"] == Effect.ALLOW and not decision["obligations"]
    return body_of(kind, **decision, allowed=allowed, **more)


def make_decider(site: Site) -> RecordingDecider:
    """Return the policy of an app; raises PolicyRuleError where a file of rules cannot be used."""
    return RecordingDecider(
        site,
        PolicyService(site.folder, site.readers.read, site.settings.policy),
        Retention.of(site.folder, site.settings.retention),
    )


def _step_id(context: _RunContext) -> str | None:
    if context.trace_id is None or context.span_id is None:
        return None
    return f"{context.trace_id.hex()}-{context.span_id.hex()}"


PolicyDeciderDep = Annotated[RecordingDecider, of_app("decider")]
