"""Policy over HTTP: checks, dry runs, rules with versions.

A check is committed before it is answered. Where it cannot be, nothing is answered that could be
taken for a permission.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from operator import itemgetter
from typing import Annotated

from fastapi import Header, Path, Query
from pydantic import WithJsonSchema
from starlette.requests import Request

from hansard_store.errors import InvalidQueryError
from hansard_store.policy.checks import list_checks
from hansard_store.policy.rules import list_policies, rule_history
from hansard_store.runs.queries import find_trace_id
from hansard_web.api.parameters import Cursor, Limit
from hansard_web.api.queries import read_numbered
from hansard_web.api.request_bodies import JsonRoute
from hansard_web.api.router import ApiResponse, NounRouter, page_answer
from hansard_web.app.site import SiteDep
from hansard_web.policy.bodies import PolicyInput, PutRules
from hansard_web.policy.decider import PolicyDeciderDep
from hansard_web.policy.json import (
    RuleVersionBody,
    Version,
    check_body,
    rule_version_body,
    rules_body,
    version_body,
    version_rules,
)
from hansard_web.policy.service import RulesInForce, given_sets
from hansard_web.principals.dependencies import principal_of
from hansard_web.sidecar.errors import VersionRequired

router = NounRouter("policy", route_class=JsonRoute)

_ETAG = re.compile(r'(?:W/)?"([0-9]{1,18})"|([0-9]{1,18})', re.ASCII)


@router.post("/v1/policy/check", "policy.decider.Checked", "policy.decider.Explained")
def check_policy(policy: PolicyDeciderDep, body: PolicyInput) -> ApiResponse:
    """Ask whether a tool may be called, or an item be seen; the check is recorded.

    With `explain: true` it is a dry run: nothing is recorded, and every rule says how it came out.
    """
    if body.explain:
        return ApiResponse(policy.explain(body))
    return ApiResponse(policy.check(body, now_ns=time.time_ns()))


@router.post("/v1/policy/explain", "policy.decider.Explained")
def explain_policy(policy: PolicyDeciderDep, body: PolicyInput) -> ApiResponse:
    """Tell how every rule comes out for a hypothetical call or item. Nothing is recorded."""
    return ApiResponse(policy.explain(body))


@router.get("/v1/policy/rules", "policy.json.Rules")
def rules_in_force(policy: PolicyDeciderDep) -> ApiResponse:
    """Return the rule sets in force; the ETag is the version to name when they are replaced."""
    return _rules_answer(policy.rules.shown())


@router.put("/v1/policy/rules", "policy.json.Rules")
def put_rules(
    policy: PolicyDeciderDep,
    request: Request,
    body: PutRules,
    if_match: Annotated[
        str | None,
        WithJsonSchema({"type": "string", "pattern": rf"^(\*|{_ETAG.pattern})$"}),
        Header(description="the ETag of what is replaced, or * for whatever is there"),
    ] = None,
) -> ApiResponse:
    """Put rule sets in force in place of those that were put before. All of them, or none.

    Sets that the server reads from files stay beside them.
    """
    expected = _expected(if_match, body.version)
    sets = given_sets(body.rule_sets)
    return _rules_answer(policy.rules.replace(sets, expected=expected, actor=_actor(request)))


@router.get("/v1/policy/versions", "policy.json.Versions")
def policy_versions(
    site: SiteDep,
    limit: Limit,
    rule: Annotated[str | None, Query(description="only this rule, as each version has it")] = None,
    cursor: Cursor = None,
) -> ApiResponse:
    """List the versions of the rules, the newest first."""

    def read(before: int) -> Sequence[Version | RuleVersionBody]:
        with site.readers.read() as connection:
            if rule is None:
                versions = list_policies(connection, before=before, limit=limit)
                return [version_body(one) for one in versions]
            history = rule_history(connection, rule, before=before, limit=limit)
            return [rule_version_body(one) for one in history]

    number = itemgetter("policy")
    return page_answer(
        read_numbered("policy versions", cursor, read, limit=limit, number=number), dict
    )


@router.get("/v1/policy/versions/{number}", "policy.json.VersionRules")
def policy_version(site: SiteDep, number: Annotated[int, Path(ge=1, lt=1 << 63)]) -> ApiResponse:
    """Return the rule sets of one version, as they were given."""
    with site.readers.read() as connection:
        return ApiResponse(version_rules(connection, number))


@router.get("/v1/policy/checks", "policy.json.Checks")
def policy_checks(
    site: SiteDep,
    limit: Limit,
    effect: Annotated[str | None, Query()] = None,
    rule: Annotated[str | None, Query(description="id of the rule that decided")] = None,
    agent: Annotated[str | None, Query()] = None,
    run: Annotated[str | None, Query(description="id of a run, or its beginning")] = None,
    cursor: Cursor = None,
) -> ApiResponse:
    """List checks, the newest first, allows included."""
    with site.readers.read() as connection:
        filters = {
            "effect": effect or None,
            "rule_id": rule or None,
            "agent": agent or None,
            "trace_id": find_trace_id(connection, run) if run else None,
        }
        page = read_numbered(
            "policy checks",
            cursor,
            lambda before: list_checks(connection, before=before, limit=limit, **filters),
            limit=limit,
            number=lambda check: check.id,
        )
    return page_answer(page, check_body)


def _rules_answer(current: RulesInForce) -> ApiResponse:
    return ApiResponse(rules_body(current), headers={"ETag": f'"{current.version}"'})


def _expected(if_match: str | None, version: int | None) -> int | None:
    """Return the version that is to be replaced, None for any; raises VersionRequired."""
    if if_match is None:
        if version is None:
            raise VersionRequired
        return version
    if if_match.strip() == "*":
        return None
    found = _ETAG.fullmatch(if_match.strip())
    if found is None:
        raise InvalidQueryError(
            "If-Match", "If-Match is not an ETag that GET /v1/policy/rules gave"
        )
    return int(found[1] or found[2])


def _actor(request: Request) -> str:
    """Say who changes the rules, as far as a token tells: its scopes, never the token."""
    token = principal_of(request)
    return "api" if token is None else f"api, token for {'+'.join(sorted(token.scopes))}"
