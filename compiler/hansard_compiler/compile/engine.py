"""A compile: twelve passes over one request, pure from end to end.

Nothing is read but the request and the ports, nothing is written at all. A compile that cannot be
done raises before there is a result, so nothing of it can be recorded by halves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hansard_compiler.canonical import stable_hash
from hansard_compiler.compile.errors import InvalidBudget
from hansard_compiler.compile.inputs import request_from
from hansard_compiler.compile.items import unix_us
from hansard_compiler.compile.models import CompilationRequest, CompiledContext, Json
from hansard_compiler.compile.passes import (
    budget,
    compress,
    conflicts,
    dedupe,
    dependencies,
    layout,
    normalize,
    policy,
    record,
    render,
    score,
    validate,
)
from hansard_compiler.compile.passes.budget import by_class
from hansard_compiler.compile.passes.layout import STABLE, VOLATILE, shown_tokens
from hansard_compiler.compile.passes.score import weights_milli
from hansard_compiler.compile.ports import Ports
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.receipts import columns, content_bytes, decision_of
from hansard_compiler.compile.state import CompileState, Receipt, Section
from hansard_compiler.compile.visibility import is_shown
from hansard_compiler.policy.decider import RuleDecider
from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.rules import parse_rules

# The twelve passes in the order in which every compile runs them, which is fixed here and nowhere
# else: it is part of what a compile means. Each reports a decision for every item it saw.
Pass = Callable[[CompileState], CompileState]

PASSES: tuple[tuple[str, Pass], ...] = (
    ("normalize", normalize.run),
    ("validate", validate.run),
    ("dedupe", dedupe.run),
    ("dependencies", dependencies.run),
    ("conflicts", conflicts.run),
    ("score", score.run),
    ("budget", budget.run),
    ("compress", compress.run),
    ("policy", policy.run),
    ("layout", layout.run),
    ("render", render.run),
    ("record", record.run),
)

OWN_SCORER = "own"  # a function of the program's own, which has no name here


@dataclass(frozen=True, slots=True)
class CompileResult:
    """What a compile made: payload, receipts, layout, allocation, and each pass's rulings."""

    id: str
    compile_hash: str
    token_allocation: Mapping[str, Any]
    state: CompileState

    @property
    def request(self) -> CompilationRequest:
        return self.state.request

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """One for every candidate, in the order in which they came."""
        return self.state.receipts

    @property
    def payload(self) -> Mapping[str, Any]:
        """The request as rendered."""
        return self.state.payload

    @property
    def scorer(self) -> str:
        """The name and version of what rated relevance; `own` when the caller gave a function."""
        relevance = self.state.ports.relevance
        return OWN_SCORER if relevance is not None else self.request.compile_config.relevance.scorer

    def section(self, name: str) -> Section:
        return next(section for section in self.state.sections if section.name == name)

    def columns(self) -> dict[str, Any]:
        """Return the receipts as span attributes, cut at 4,000 items."""
        return columns(self.receipts)

    def trail(self, item_id: str) -> list[Json]:
        """Return the ruling of every pass that saw an item, in order."""
        named = [
            (report.name, report.rulings.get(item_id, report.usual))
            for report in self.state.reports
            if item_id in report.seen
        ]
        return [
            {"pass": name, "decision": one.decision, "reason": one.reason.value, "notes": one.note}
            for name, one in named
        ]

    def payloads(self) -> dict[str, bytes]:
        """Return what the receipts refer to: originals and what was sent, by reference.

        Content above this compile's clearance, or of another scope, has a reference and no bytes.
        """
        state, found = self.state, {}
        for item, receipt in zip(state.items, self.receipts, strict=True):
            if is_shown(item, state.request.compile_config.clearance) and (
                receipt.reason is not ReasonCode.OUT_OF_SCOPE
            ):
                found[receipt.original_ref] = content_bytes(state.originals[item.id])
            if receipt.final_ref is not None:
                sent = state.shortened.get(item.id, (state.guarded[item.id].content, 0))[0]
                found[receipt.final_ref] = content_bytes(sent)
        return found

    def context(self) -> CompiledContext:
        """Return the result in the form in which it is stored and sent."""
        weights = weights_milli(self.request.compile_config.weights)
        selected = [item.id for item in self.state.live]
        chosen = set(selected)
        return CompiledContext(
            id=self.id,
            request_id=self.request.request_id,
            provider=self.request.provider,
            model=self.request.model,
            compile_hash=self.compile_hash,
            compiler_version=self.request.compile_config.compiler_version,
            scorer=self.scorer,
            selected_items=selected,
            excluded_items=[one.item_id for one in self.receipts if one.item_id not in chosen],
            decisions=[decision_of(one, weights, scorer=self.scorer) for one in self.receipts],
            token_allocation=dict(self.token_allocation),
            stable_prefix_hash=self.section(STABLE).hash,
            volatile_suffix_hash=self.section(VOLATILE).hash,
            layout=[section.json() for section in self.state.sections],
            passes=[_pass_json(number, self.state) for number in range(len(PASSES))],
            rendered_payload=dict(self.payload),
        )


def compile_context(request: CompilationRequest | Mapping[str, Any], ports: Ports) -> CompileResult:
    """Choose, shorten and lay out the context of one model call; every candidate gets a receipt.

    A mapping is checked first and may hold context items of any shape. Raises CompileError.
    """
    checked = request if isinstance(request, CompilationRequest) else request_from(request)
    budget, reserve = checked.token_budget, checked.response_reserve
    if budget < 0 or reserve < 0 or reserve > budget:
        raise InvalidBudget(token_budget=budget, response_reserve=reserve)
    state = CompileState(checked, _with_policy(ports, checked), unix_us(checked.now))
    for _, run in PASSES:
        state = run(state)
    allocation = _allocation(state)
    digest = "sha256:" + stable_hash(_identity(state, allocation), pieces=2).hex()
    made_id = stable_hash([checked.request_id, checked.step_id, digest]).hex()[:32]
    return CompileResult(made_id, digest, allocation, state)


def _with_policy(ports: Ports, request: CompilationRequest) -> Ports:
    """Let the rules of the request decide where there is no policy; raises PolicyRuleError."""
    if ports.policy is not None or not request.policy_rules:
        return ports
    rules = parse_rules([rule.model_dump() for rule in request.policy_rules])
    return replace(ports, policy=RuleDecider(Policy(rules=rules)))


def _allocation(state: CompileState) -> Json:
    request = state.request
    tokens = {item.id: shown_tokens(state, item.id) for item in state.live}
    used = sum(tokens.values())
    available = request.token_budget - request.response_reserve
    classes = {item.id: state.classes[item.id] for item in state.live}
    return {
        "budget": request.token_budget,
        "reserve": request.response_reserve,
        "available": available,
        "used": used,
        "free": available - used,
        "by_class": by_class(classes, tokens),
        "by_section": {section.name: section.tokens for section in state.sections},
        "counter": state.ports.counter.name,
    }


def _identity(state: CompileState, allocation: Mapping[str, Any]) -> Json:
    """Return what the compile hash covers: the input, the configuration and every decision.

    Not the ids of request, run and step: the same compile made twice has one hash.
    """
    request = state.request
    removed = {"removed": request.removed_items} if request.removed_items else {}
    return {
        **removed,
        "version": request.compile_config.compiler_version,
        "provider": request.provider,
        "model": request.model,
        "now_us": state.now_us,
        "task_summary": request.task_summary,
        "config": request.compile_config.model_dump(mode="json"),
        "policy_rules": [rule.model_dump(mode="json") for rule in request.policy_rules],
        "allocation": allocation,
        "sections": [[section.name, section.hash] for section in state.sections],
        "items": [
            (item.id, item.stable_hash, one.decision, one.pass_name, one.reason.value,
             None if one.score is None else one.score.total, one.original_tokens, one.final_tokens)
            for item, one in zip(state.items, state.receipts, strict=True)
        ],
        "payload": state.payload,
    }  # fmt: skip


def _pass_json(number: int, state: CompileState) -> Json:
    """Return a pass in numbers: how many items it saw, and how many got each reason."""
    report = state.reports[number]
    counts: dict[str, int] = {}
    for ruling in report.rulings.values():
        counts[ruling.reason.value] = counts.get(ruling.reason.value, 0) + 1
    rest = len(report.seen) - len(report.rulings)
    if rest:
        usual = report.usual.reason.value
        counts[usual] = counts.get(usual, 0) + rest
    return {"number": number + 1, "name": report.name, "seen": len(report.seen), "reasons": counts}
