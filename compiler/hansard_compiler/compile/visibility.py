"""What may be shown of each item: clearance, policy and redaction, before anything leaves.

Everything that looks at texts from here on (budget, compressor, layout, preview, receipts) is given
what this module lets through, so a secret cannot get around the later pass that reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from hansard_compiler.canonical import canonical_bytes
from hansard_compiler.compile.config import SENSITIVITIES
from hansard_compiler.compile.items import CandidateItem, text_of
from hansard_compiler.compile.models import Json
from hansard_compiler.compile.ports import ALLOWED, PolicyDecider, PolicyVerdict, Subject
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.state import CompileState, Guarded
from hansard_compiler.policy.masks import apply_mask
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.redaction.rules import PII_RULES, SECRET_RULES, SecretRule

_GROUPS = {"secrets": SECRET_RULES, "pii": PII_RULES}
_BY_NAME = {rule.name: rule for rule in (*SECRET_RULES, *PII_RULES)}
_WITHHELD_BY = {
    "deny": ReasonCode.POLICY_DENIED,
    "require_approval": ReasonCode.APPROVAL_REQUIRED,
}
_BLOCK = 32
_NOTHING: tuple[str, ...] = ()
_RANK: dict[str, int] = {name: rank for rank, name in enumerate(SENSITIVITIES)}


def is_shown(item: CandidateItem, clearance: str) -> bool:
    """Return whether an item is not more sensitive than a compile is cleared for."""
    return _RANK[item.sensitivity] <= _RANK[clearance]


def guard_all(state: CompileState) -> dict[str, Guarded]:
    """Return what may be shown of every live item. About 5 µs an item of 1 KB without rules."""
    clearance = state.request.compile_config.clearance
    redactor = state.ports.redactor
    policy = state.ports.policy
    found = {}
    suspicious = _suspicious(redactor, state.live)
    for item in state.live:
        original, removed = item.content, _NOTHING
        if item.id in suspicious:
            original, removed = without_secrets(redactor, item.content, item.text)
        if not is_shown(item, clearance):
            reason = ReasonCode.SENSITIVITY_WITHHELD
            found[item.id] = Guarded("", "", original, reason, removed=removed)
            continue
        if policy is None and not removed:  # most items: nothing requires another text
            found[item.id] = Guarded(item.text, original, original)
            continue
        verdict = ALLOWED if policy is None else _ask(policy, item, state)
        found[item.id] = _guarded(item, original, removed, verdict=verdict, redactor=redactor)
    return found


def _suspicious(redactor: Redactor, items: Sequence[CandidateItem]) -> set[str]:
    """Return the items that may hold a secret; block by block, since most blocks hold none."""
    found: set[str] = set()
    for start in range(0, len(items), _BLOCK):
        block = items[start : start + _BLOCK]
        texts = [item.text.encode("utf-8", "surrogatepass") for item in block]
        if redactor.scan_bytes(b"\n".join(texts)):
            pairs = zip(block, texts, strict=True)
            found.update(item.id for item, text in pairs if redactor.scan_bytes(text))
    return found


def _ask(policy: PolicyDecider, item: CandidateItem, state: CompileState) -> PolicyVerdict:
    request, config = state.request, state.request.compile_config
    subject = Subject(
        item_id=item.id,
        kind=item.kind,
        sensitivity=item.sensitivity,
        source_type=item.source.source_type if item.source else "other",
        source_uri=item.source.uri if item.source else None,
        tags=item.tags,
        scope=item.scope,
        metadata=item.metadata,
        provider=request.provider,
        model=request.model,
        agent=config.agent,
        task_type=config.task_type,
        environment=config.environment,
        compile_scope=config.scope,
    )
    try:
        return policy.decide(subject)
    except Exception:  # this stage's border: a port of others raises anything, and that denies
        return PolicyVerdict(effect="deny", failed=True)


def _guarded(
    item: CandidateItem,
    original: Json | str,
    removed: tuple[str, ...],
    *,
    verdict: PolicyVerdict,
    redactor: Redactor,
) -> Guarded:
    withheld = ReasonCode.POLICY_FAILED if verdict.failed else _WITHHELD_BY.get(verdict.effect)
    if withheld:
        return Guarded("", "", original, withheld, verdict.rule_ids, removed)
    content, by_policy = original, verdict.effect == "redact"
    if by_policy:
        content, cut = _redacted(redactor, original, verdict)
        removed = (*removed, *cut)
        by_policy = bool(cut)
    text = item.text if content is item.content else _text(content)
    return Guarded(
        text, content, original, None, verdict.rule_ids, removed, by_policy, verdict.priority_micro
    )


def without_secrets(
    redactor: Redactor, content: Json | str, text: str
) -> tuple[Json | str, tuple[str, ...]]:
    """Return a content without secrets (the same object when it has none), and what was cut."""
    redacted = redactor.redact_text(text)
    if not redacted.findings:
        return content, ()
    removed = tuple(f"{one.rule}:{one.fingerprint}" for one in redacted.findings)
    if isinstance(content, str):
        return redacted.text, removed
    seen: set[str] = set()

    def cut(value: str, key: str) -> str:
        found = redactor.redact_text(value, key=key)
        seen.update(one.fingerprint for one in found.findings)
        return found.text

    clean = _walk(content, cut)
    # Parts read one after the other may hold a secret that none of them holds by itself.
    is_spread = isinstance(content.get("parts"), list) and any(
        one.fingerprint not in seen for one in redacted.findings
    )
    if is_spread or redactor.redact_text(_text(clean)).findings:
        fingerprint = redactor.fingerprint(canonical_bytes(content))
        return _all_cut(content, f"‹redacted:everything:{fingerprint}›"), removed
    return clean, removed


def _redacted(
    redactor: Redactor, content: Json | str, verdict: PolicyVerdict
) -> tuple[Json | str, tuple[str, ...]]:
    rules = _rules_named(verdict.redact)
    whole = any(mask.is_whole for _, mask in verdict.masks)
    if whole or (rules is None and (verdict.redact or not verdict.masks)):
        fingerprint = redactor.fingerprint(canonical_bytes(content))
        return _all_cut(content, f"‹redacted:policy:{fingerprint}›"), (f"policy:{fingerprint}",)
    cut: tuple[str, ...] = ()
    for rule_id, mask in verdict.masks:
        masked = apply_mask(content, mask, rule_id)
        if masked.count:
            content, cut = masked.content, (*cut, f"mask:{rule_id}")
    if rules is None:
        return content, cut
    clean, found = without_secrets(_with_rules(redactor, rules), content, _text(content))
    return clean, (*cut, *found)


def _rules_named(names: tuple[str, ...]) -> tuple[SecretRule, ...] | None:
    """Return the rules a verdict names; None when it names none, or one not known."""
    rules: list[SecretRule] = []
    for name in names:
        if name not in _GROUPS and name not in _BY_NAME:
            return None
        rules.extend(_GROUPS.get(name) or (_BY_NAME[name],))
    return tuple(dict.fromkeys(rules)) or None


@lru_cache(maxsize=16)
def _with_rules(redactor: Redactor, rules: tuple[SecretRule, ...]) -> Redactor:
    return redactor.with_rules(rules)


def _all_cut(content: Json | str, marker: str) -> Json | str:
    if isinstance(content, str) or not isinstance(content.get("parts"), list):
        return marker
    return {**content, "parts": [_part_cut(part, marker) for part in content["parts"]]}


def _part_cut(part: Any, marker: str) -> Json:
    """Return a part of a message with only its links left: calls and results stay paired."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind == "tool_call":
        name = part.get("name", "")
        return {"type": kind, "id": part.get("id"), "name": name, "arguments": {"redacted": marker}}
    if kind == "tool_result":
        return {"type": kind, "id": part.get("id"), "content": marker}
    return {"type": "text", "text": marker}


def _walk(value: Any, clean: Callable[[str, str], str], key: str = "") -> Any:
    if isinstance(value, str):
        return clean(value, key)
    if isinstance(value, Mapping):
        return {clean(name, ""): _walk(child, clean, name) for name, child in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(child, clean, key) for child in value]
    return value


def _text(content: Json | str) -> str:
    return content if isinstance(content, str) else text_of(content)
