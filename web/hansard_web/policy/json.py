"""Policy as the API and the command line return it."""

from __future__ import annotations

from typing import Any

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.errors import NotFoundError
from hansard_compiler.policy.rules import rule_json
from hansard_store.policy.checks import StoredCheck
from hansard_store.policy.rules import (
    PolicyVersion,
    RuleSetInput,
    RuleVersion,
    find_policy,
    rule_sets_of,
)
from hansard_web.api.values import stored_fields, time_text
from hansard_web.policy.service import RulesInForce


def rules_body(current: RulesInForce) -> Json:
    """Return what is in force: sets put through the API, and those of files."""
    put = current.put_version
    return {
        "version": current.version,
        "changed_at": time_text(put.time_ns) if put else None,
        "changed_by": put.actor if put else None,
        "policy_hash": current.policy.hash,
        "defaults": {key: str(value) for key, value in current.policy.defaults.items()},
        "rule_sets": [_set_body(one, source="api") for one in current.put]
        + [_set_body(one, source="file", path=path) for path, one in current.read],
        "rules": [
            {**rule_json(rule), "name": rule.name, "description": rule.description}
            for rule in current.policy.rules
        ],
        "problem": current.problem,
    }


def _set_body(rule_set: RuleSetInput, *, source: str, path: str | None = None) -> Json:
    return {
        **stored_fields(rule_set.read, "name version hash"),
        "source": source,
        "path": path,
        "document": rule_set.document,
    }


def version_body(version: PolicyVersion) -> Json:
    """Return a version of the rules, without them."""
    return {
        "policy": version.id,
        "time": time_text(version.time_ns),
        "source": version.source,
        "actor": version.actor,
        "policy_hash": version.hash,
    }


def rule_version_body(rule: RuleVersion) -> Json:
    """Return a rule as one version has it."""
    return {
        "policy": rule.policy,
        "time": time_text(rule.time_ns),
        **stored_fields(rule, "source rule_set version effect priority"),
        "rule": rule.body,
    }


def version_rules(connection: apsw.Connection, number: int) -> Json:
    """Return a version of the rules with its rule sets; raises NotFoundError."""
    version = find_policy(connection, number)
    if version is None:
        raise NotFoundError("policy version", str(number))
    return {**version_body(version), "rule_sets": rule_sets_of(connection, number)}


def check_body(check: StoredCheck) -> Json:
    """Return a check as it was recorded."""
    row = check.row
    step_id = None
    if check.trace_id is not None and check.span_id is not None:
        step_id = f"{check.trace_id.hex()}-{check.span_id.hex()}"
    fields: dict[str, Any] = row._asdict()
    del fields["time_ns"]
    return {
        "check_id": check.id,
        "time": time_text(row.time_ns),
        "run_id": check.trace_id.hex() if check.trace_id is not None else None,
        "step_id": step_id,
        "source": "span" if check.is_derived else "api",
        **fields,
    }
