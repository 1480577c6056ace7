"""What the routes of policy answer, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from hansard_web.api.schemas import Answer, Body, Page

Effect = Literal["allow", "deny", "redact", "require_approval", "require_receipt"]


class Decision(Body):
    """What rules decide. `obligations` are all that must be met before it is done or shown."""

    action: Literal["see", "do"]
    effect: Effect
    allowed: bool = Field(description="nothing stands against it now: no denial, no obligation")
    reason_code: Literal["rule", "default", "condition_error"]
    reason: str
    rule_id: str | None
    rules: list[dict[str, Any]]
    obligations: list[str]
    inputs: dict[str, Any]
    policy_hash: str


class Checked(Answer, Decision):
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


class RuleSet(Body):
    """A rule set in force; `document` is what was given."""

    name: str
    version: str
    hash: str
    source: Literal["api", "file"]
    path: str | None
    document: dict[str, Any]


class Rules(Answer):
    """What is in force; `problem` says why a file, as it is now, is not."""

    version: int
    changed_at: str | None
    changed_by: str | None
    policy_hash: str
    defaults: dict[str, str]
    rule_sets: list[RuleSet]
    rules: list[dict[str, Any]]
    problem: str | None


class Version(Body):
    """When which rules took effect, and who saw to it."""

    policy: int
    time: str
    source: Literal["api", "file"]
    actor: str
    policy_hash: str


class RuleVersion(Body):
    """One rule as one version has it."""

    policy: int
    time: str
    source: Literal["api", "file"]
    rule_set: str
    version: str
    effect: Effect
    priority: int
    rule: dict[str, Any]


class Versions(Page):
    """Versions of all rules, or of one."""

    items: list[Version | RuleVersion]


class VersionRules(Answer, Version):
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
