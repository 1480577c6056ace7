"""Policy as the API and the command line return it."""

from __future__ import annotations

from typing import Any, Literal

import apsw

from hansard_compiler.compile.models import Effect
from hansard_compiler.errors import NotFoundError
from hansard_compiler.policy.rules import rule_json
from hansard_store.bodies import Answer, Body, BodyT, Page, body_of
from hansard_store.policy.checks import StoredCheck
from hansard_store.policy.rules import (
    PolicyVersion,
    RuleSetInput,
    RuleVersion,
    Source,
    find_policy,
    rule_sets_of,
)
from hansard_store.times import time_text
from hansard_web.policy.service import RulesInForce


class RuleSetBody(Body):
    """A rule set in force; `document` is what was given."""

    name: str
    version: str
    hash: str
    source: Source
    path: str | None
    document: dict[str, Any]


class Rules(Answer):
    """What is in force; `problem` says why a file, as it is now, is not."""

    version: int
    changed_at: str | None
    changed_by: str | None
    policy_hash: str
    defaults: dict[str, str]
    rule_sets: list[RuleSetBody]
    rules: list[dict[str, Any]]
    problem: str | None


class Version(Body):
    """When which rules took effect, and who saw to it."""

    policy: int
    time: str
    source: Source
    actor: str
    policy_hash: str


class RuleVersionBody(Body):
    """One rule as one version has it."""

    policy: int
    time: str
    source: Source
    rule_set: str
    version: str
    effect: Effect
    priority: int
    rule: dict[str, Any]


class Versions(Page):
    """Versions of all rules, or of one."""

    items: list[Version | RuleVersionBody]


class VersionRules(Version, Answer):
    """A version with its rule sets."""

    rule_sets: list[dict[str, Any]]


class Check(Body):
    """A check as it was recorded; one that a span tells may lack what its sender left out."""

    check_id: int
    time: str
    run_id: str | None
    step_id: str | None
    source: Literal["api", "span"]
    action: str
    effect: str
    reason_code: str
    reason: str | None
    rule_id: str | None
    rule_set: str | None
    rule_version: str | None
    rules: list[dict[str, Any]]
    obligations: list[str]
    agent: str | None
    subject: str | None
    inputs: dict[str, Any]
    policy_hash: str


class Checks(Page):
    """Checks, the newest first."""

    items: list[Check]


def rules_body(current: RulesInForce) -> Rules:
    """Return what is in force: sets put through the API, and those of files."""
    put = current.put_version
    return body_of(
        Rules,
        current,
        changed_at=time_text(put.time_ns) if put else None,
        changed_by=put.actor if put else None,
        policy_hash=current.policy.hash,
        defaults={key: str(value) for key, value in current.policy.defaults.items()},
        rule_sets=[_set_body(one, source="api") for one in current.put]
        + [_set_body(one, source="file", path=path) for path, one in current.read],
        rules=[
            {**rule_json(rule), "name": rule.name, "description": rule.description}
            for rule in current.policy.rules
        ],
    )


def _set_body(rule_set: RuleSetInput, *, source: Source, path: str | None = None) -> RuleSetBody:
    document = rule_set.document
    return body_of(RuleSetBody, rule_set.read, source=source, path=path, document=document)


def version_body(version: PolicyVersion) -> Version:
    """Return a version of the rules, without them."""
    return _version(Version, version)


def _version(kind: type[BodyT], version: PolicyVersion, **more: Any) -> BodyT:
    time, policy_hash = time_text(version.time_ns), version.hash
    return body_of(kind, version, policy=version.id, time=time, policy_hash=policy_hash, **more)


def rule_version_body(rule: RuleVersion) -> RuleVersionBody:
    """Return a rule as one version has it."""
    return body_of(RuleVersionBody, rule, time=time_text(rule.time_ns), rule=rule.body)


def version_rules(connection: apsw.Connection, number: int) -> VersionRules:
    """Return a version of the rules with its rule sets; raises NotFoundError."""
    version = find_policy(connection, number)
    if version is None:
        raise NotFoundError("policy version", str(number))
    return _version(VersionRules, version, rule_sets=rule_sets_of(connection, number))


def check_body(check: StoredCheck) -> Check:
    """Return a check as it was recorded."""
    step_id = None
    if check.trace_id is not None and check.span_id is not None:
        step_id = f"{check.trace_id.hex()}-{check.span_id.hex()}"
    return body_of(
        Check,
        check.row,
        check_id=check.id,
        time=time_text(check.row.time_ns),
        run_id=check.trace_id.hex() if check.trace_id is not None else None,
        step_id=step_id,
        source="span" if check.is_derived else "api",
    )
