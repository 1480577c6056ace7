"""A compile as it is recorded: attributes of its span, and what they refer to as payloads.

Nothing here decides what may be stored: the recorder applies the retention mode. Secrets are cut
out all the same, and content above the compile's clearance is in none of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from hansard_compiler.canonical import canonical_bytes
from hansard_compiler.compile.config import BM25, FIRST_VERSION
from hansard_compiler.compile.engine import CompileResult
from hansard_compiler.compile.items import CandidateItem
from hansard_compiler.compile.models import CompilationRequest, Json, parse
from hansard_compiler.compile.passes.layout import STABLE, VOLATILE
from hansard_compiler.compile.ports import Ports
from hansard_compiler.compile.receipts import COLUMNS_LIMIT
from hansard_compiler.policy.checks import PolicyCheck
from hansard_compiler.policy.decider import RuleDecider
from hansard_compiler.policy.engine import policy_document
from hansard_compiler.policy.rules import Effect

REQUEST_MEDIA_TYPE: Final = "application/vnd.hansard.compile-request+json"
RESULT_MEDIA_TYPE: Final = "application/vnd.hansard.compiled-context+json"
POLICY_MEDIA_TYPE: Final = "application/vnd.hansard.policy+json"
CHECKS_MEDIA_TYPE: Final = "application/vnd.hansard.policy-checks+json"
WITHHELD: Final = "‹withheld: this compile may not show it›"
# Which of them were set decides whether the request alone is enough to compile again.
_PIECES: Final = 2  # fields, and what their lists hold
_PORTS: Final = ("policy", "relevance", "compressor", "renderer")


def attributes_of(result: CompileResult, ports: Ports) -> Json:
    """Return the attributes of a compile's span; `ports` are those of the caller."""
    request, allocation = result.request, result.token_allocation
    named = {
        "id": result.id,
        "hash": result.compile_hash,
        "provider": request.provider,
        "model": request.model,
        "stable_prefix_hash": result.section(STABLE).hash,
        "volatile_suffix_hash": result.section(VOLATILE).hash,
        "budget.tokens": allocation["budget"],
        "budget.reserve": allocation["reserve"],
        "budget.used": allocation["used"],
        "counter": allocation["counter"],
        "scorer": result.scorer,
        "compiler_version": request.compile_config.compiler_version,
        "ports": [name for name in _PORTS if getattr(ports, name) is not None],
    }
    attributes = {f"hansard.compilation.{name}": value for name, value in named.items()}
    return {**attributes, **result.columns()}


# --- payloads ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """A compile's request as canonical JSON. `is_whole`: compiled again it gives the same hash."""

    data: bytes
    is_whole: bool


def stored_request(result: CompileResult) -> StoredRequest:
    """Return the request without secrets and without what the compile was not cleared to see.

    Where something was cut, the item's `stable_hash` goes too: it no longer fits.
    """
    stored, payloads = result.request.model_dump(mode="json"), result.payloads()
    originals, is_whole = result.state.originals, True
    for item, receipt in zip(result.state.items, result.receipts, strict=True):
        original = originals[item.id] if receipt.original_ref in payloads else WITHHELD
        if original is not item.content:
            _replace(stored, item, original)
            is_whole = False
    return StoredRequest(canonical_bytes(stored, pieces=_PIECES), is_whole)


def recorded_request(data: bytes) -> CompilationRequest:
    """Return the request of a stored compile, as it was compiled.

    One that does not say which compiler and which scorer it was made with is 0.1's; every later
    one says it. Raises InvalidInput, UnknownSchemaVersion, and ValueError for what is no JSON.
    """
    found = json.loads(data)
    if isinstance(found, dict):
        config = found.get("compile_config")
        config = dict(config) if isinstance(config, dict) else {}
        relevance = config.get("relevance")
        relevance = relevance if isinstance(relevance, dict) else {}
        found["compile_config"] = {
            "compiler_version": FIRST_VERSION,
            **config,
            "relevance": {"scorer": BM25, **relevance},
        }
    return parse(CompilationRequest, found)


def _replace(stored: Json, item: CandidateItem, content: Any) -> None:
    items, memories = stored["context_items"], stored["memory_records"]
    material = [*items, *memories]
    if item.position < len(material):
        material[item.position]["content"] = content
        material[item.position].pop("stable_hash", None)
        return
    name = item.id.removeprefix("tool:")
    whole = content if isinstance(content, dict) else {"name": name, "description": content}
    stored["tool_specs"][item.position - len(material)] = whole


def result_bytes(result: CompileResult) -> bytes:
    """Return the compiled context as canonical JSON."""
    return canonical_bytes(result.context().plain(), pieces=_PIECES)


# --- policy -----------------------------------------------------------------------------------


def policy_bytes(ports: Ports) -> bytes | None:
    """Return the rules that came beside the request as canonical JSON.

    None where none were, or where a decider of the program's own was.
    """
    if not isinstance(ports.policy, RuleDecider):
        return None
    document = policy_document(ports.policy.policy)
    return None if document is None else canonical_bytes(document)


def attributes_of_checks(checks: Sequence[PolicyCheck]) -> Json:
    """Return policy checks as attributes of one span: arrays of equal length, cut at 4,000.

    What was denied, or waits for an approval, comes first where not all can be shown.
    """
    strict = Counter(str(check.effect) for check in checks)
    effects = sorted((check.effect for check in checks), key=lambda effect: effect.rank)
    shown = list(checks)
    if len(shown) > COLUMNS_LIMIT:
        shown = sorted(shown, key=lambda check: check.effect.rank)[:COLUMNS_LIMIT]
    named = {
        "effect": str(effects[0]) if effects else str(Effect.ALLOW),
        "hash": checks[0].policy_hash if checks else "",
        "total": len(checks),
        "denied": strict[str(Effect.DENY)],
        "approvals": sum(check.needs_approval and not check.is_denied for check in checks),
        "actions": [check.action for check in shown],
        "subjects": [_subject_of(check) for check in shown],
        "effects": [str(check.effect) for check in shown],
        "rule_ids": [check.rule_id or "" for check in shown],
        "rule_sets": [check.rule.rule_set if check.rule else "" for check in shown],
        "versions": [check.rule.version if check.rule else "" for check in shown],
        "reasons": [check.reason_code for check in shown],
        "obligations": [",".join(sorted(map(str, check.obligations))) for check in shown],
    }
    return {f"hansard.policy.{name}": value for name, value in named.items()}


def checks_bytes(checks: Sequence[PolicyCheck]) -> bytes:
    """Return the whole records of policy checks as canonical JSON."""
    return canonical_bytes([check.json() for check in checks])


def _subject_of(check: PolicyCheck) -> str:
    """Return the subject of a check: an item's id, or a tool's name."""
    subject = check.facts.get("item") or check.facts.get("tool") or {}
    return str(subject.get("id") or subject.get("name") or "")
