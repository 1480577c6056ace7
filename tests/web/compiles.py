"""A compile as an agent makes and tells it: compiled for real, sent as spans and payloads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_compiler.canonical import canonical_bytes
from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.models import CompilationRequest, parse
from hansard_compiler.compile.ports import Ports
from hansard_compiler.compile.record import attributes_of_checks
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.tokens.estimators import ClassWeighted
from tests.web.traces import Trace, said

RUN = "c" * 32
NOW = "2026-03-04T12:00:00Z"
KEY = "sk-proj-" + "Zq8Xw2Lm" * 6  # looks like a credential, is none
Put = Callable[[bytes, str], None]

_ROUNDING = (
    "Rounding. A context carries a rounding mode that is used when a result does not fit its "
    "precision. Contexts are per thread; see the section on threads for how a new thread gets its "
    "own copy of the default. ROUND_HALF_EVEN goes to the nearest value, ties to the even "
    "neighbour. It is the default, and it is what the built-in round() does. ROUND_HALF_UP goes to "
    "the nearest value, ties away from zero. ROUND_05UP rounds away from zero if the last digit "
    "after rounding towards zero would be 0 or 5. ROUND_CEILING and ROUND_FLOOR round towards "
    "positive and negative infinity. Use quantize() with a step such as Decimal('0.01') to fix the "
    "number of places of money in cents. Traps turn signals into exceptions. "
)


def candidate(item_id: str, kind: str, content: Any, source: Any, **more: Any) -> dict[str, Any]:
    where = source if isinstance(source, Mapping) else {"source_type": source}
    return {
        "id": item_id,
        "kind": kind,
        "content": content,
        "source_ref": dict(where),
        "created_at": NOW,
        **more,
    }


def file(uri: str, **more: Any) -> dict[str, Any]:
    return {"source_type": "file", "uri": uri, **more}


def quillbook(turn: int = 3) -> list[dict[str, Any]]:
    """What an engineer's agent weighs while it mends a rounding bug.

    The file to mend ranks above the document on rounding, which `pieces/1` finds more relevant: so
    a budget of 2,600 has room for the file, and for the document only when it is shortened.
    """
    words = "def to_cents(value): return int(round(value * 100))  # half up wanted\n"
    read = {"step_id": f"{RUN}-{4:016x}", "run_id": RUN}
    return [
        candidate("instructions", "system", "You are mender, a careful engineer. " * 40,
                  file("mender/prompts/system.md")),
        candidate("tool:read_file", "tool_schema",
                  {"name": "read_file", "description": "Read one file of the workspace.",
                   "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}},
                  {"source_type": "app_state", "title": "tool registry"}),
        candidate("rule:write-asks", "policy", "Tools that write ask a person first.",
                  {"source_type": "policy", "title": "policy file"}, tags=["required"]),
        candidate("money-is-decimal", "memory", "Money is Decimal inside, float only at the edge.",
                  {"source_type": "memory", "title": "memory, written 3 Nov by Noor",
                   "metadata": {"memory_id": "mem-0017"}},
                  tags=["pinned", "profile"], trust_score=1.0, importance_score=0.7),
        candidate("no-test-edits", "constraint", "Do not edit tests.", "user"),
        candidate("plan-3", "plan", "Step 3 of 4: patch to_cents so that it rounds half up. " * 4,
                  {"source_type": "app_state", "title": "plan of turn 2"}),
        candidate("quillbook/money.py", "file", words * 24,
                  file("quillbook/money.py", version="9f2c1", metadata=read),
                  importance_score=1.0, trust_score=0.9, dependencies=["plan-3"]),
        candidate("tests/test_rounding.py", "file",
                  "def test_half_up(): assert to_cents(1.005)\n" * 16,
                  file("tests/test_rounding.py"), importance_score=0.7, trust_score=0.9),
        candidate("decimal-rounding", "retrieval_doc", _ROUNDING * 4,
                  {"source_type": "retrieval", "title": "Rounding modes, decimal reference",
                   "uri": "https://docs.python.org/3/library/decimal.html#rounding-modes",
                   "retrieval_query": "decimal round half up quantize cents",
                   "positions": ["lines 212 to 301"], "author": "Python", "metadata": read},
                  trust_score=0.2, importance_score=0.0),
        candidate("quillbook/invoice.py", "file",
                  "total = sum(to_cents(line) for line in lines)\n" * 60,
                  file("quillbook/invoice.py"), importance_score=0.3, trust_score=0.9),
        candidate("quillbook/tax_tables.py", "file",
                  "RATES = {'CH': 81, 'DE': 190, 'AT': 200}\n" * 180,
                  file("quillbook/tax_tables.py"), importance_score=0.2, trust_score=0.9),
        candidate("binary-floats", "retrieval_doc", "Binary floating point, an overview. " * 300,
                  {"source_type": "retrieval", "title": "Binary floating point, an overview",
                   "uri": "file:///srv/docs/fp.md"}, importance_score=0.1),
        candidate("rates", "file", "2019-01-01;1.1271\n" * 2_000, file("data/rates_2019_2026.csv"),
                  importance_score=0.0, trust_score=0.4),
        candidate("money.py, again", "file", words * 24, file("quillbook/money.py"),
                  trust_score=0.5),
        candidate("python-3.10", "memory", "CI runs Python 3.10.",
                  {"source_type": "memory", "title": "memory, written 14 May"},
                  ttl_seconds=3600, created_at="2026-03-01T09:00:00Z"),
        candidate("payroll", "memory", "Payroll rounds each line.",
                  {"source_type": "memory", "title": "memory of project payroll"},
                  scope={"project": "payroll"}),
        candidate("deploy-keys", "file", "the keys are in the vault",
                  file("ops/deploy_keys.md"), tags=["keys"]),
        candidate(".env.test", "file", f"DATABASE=test\nOPENAI_API_KEY={KEY}\nround half up = 1\n",
                  file(".env.test"), importance_score=0.9),
        candidate("result-4", "tool_result",
                  {"role": "tool", "parts": [{"type": "tool_result", "id": "call_4",
                                              "content": "1 failed, 46 passed: to_cents(1.005)"}]},
                  {"source_type": "tool", "title": "run_tests, turn 2",
                   "metadata": {"step_id": f"{RUN}-{5:016x}"}}, dependencies=["call-4"]),
        candidate("call-4", "assistant_msg",
                  {"role": "assistant", "parts": [{"type": "tool_call", "id": "call_4",
                                                   "name": "run_tests", "arguments": {}}]},
                  {"source_type": "app_state", "title": "chat, turn 2"}),
        candidate(f"ask-{turn}", "user_msg", "Make the failing test pass. Do not edit the tests.",
                  "user"),
    ]  # fmt: skip


RULES = [
    {
        "id": "restricted-sources",
        "name": "Keys are not for agents",
        "applies_to": {"action": "see"},
        "effect": "deny",
        "conditions": {"item.id": {"equals": "deploy-keys"}},
    }
]


def compiled(
    items: Sequence[Mapping[str, Any]] | None = None,
    *,
    step: int = 2,
    budget: int = 3_400,
    reserve: int = 600,
    run: str = RUN,
    rules: Sequence[Mapping[str, Any]] = (),
    memories: Sequence[Mapping[str, Any]] = (),
    **config: Any,
) -> CompileResult:
    """Compile some candidates, by default those of the rounding bug."""
    request = parse(
        CompilationRequest,
        {
            "request_id": f"request-{step}",
            "run_id": run,
            "step_id": f"{run}-{step:016x}",
            "provider": "openai",
            "model": "gpt-4o-mini",
            "now": NOW,
            "task_summary": "make round half up work in money to_cents, rounding Decimal quantize",
            "token_budget": budget,
            "response_reserve": reserve,
            "memory_records": memories,
            "context_items": [dict(one) for one in (quillbook() if items is None else items)],
            "policy_rules": [dict(rule) for rule in rules],
            "compile_config": {"min_score": 0.5, "scope": {"project": "quillbook"}, **config},
        },
    )
    redactor = Redactor(b"a key for tests, and nothing else")
    return compile_context(request, Ports(counter=ClassWeighted(), redactor=redactor))


def ref_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def compile_span(
    trace: Trace, result: CompileResult, number: int, parent: int, at_s: float
) -> dict[str, bytes]:
    """Add the span of a compile; returns its payloads by reference."""
    asked = canonical_bytes(result.request.model_dump(mode="json"))
    made = canonical_bytes(result.context().model_dump(mode="json"))
    allocation = result.token_allocation
    told = {
        "hansard.compilation.id": result.id,
        "hansard.compilation.hash": result.compile_hash,
        "hansard.compilation.stable_prefix_hash": result.section("stable_prefix").hash,
        "hansard.compilation.volatile_suffix_hash": result.section("volatile_suffix").hash,
        "hansard.compilation.budget.tokens": allocation["budget"],
        "hansard.compilation.budget.reserve": allocation["reserve"],
        "hansard.compilation.budget.used": allocation["used"],
        "hansard.compilation.provider": result.request.provider,
        "hansard.compilation.model": result.request.model,
        "hansard.compilation.request_ref": ref_of(asked),
        "hansard.compilation.result_ref": ref_of(made),
        **result.columns(),
    }
    trace.span(number, parent, "hansard.compile", at_s, 0.012, **told)
    of_policy = getattr(result.state.ports.policy, "checks", ())
    if of_policy:
        checks = attributes_of_checks(of_policy)
        trace.span(number + 4, number, "hansard.policy.check", at_s, 0.001, **checks)
    return {ref_of(asked): asked, ref_of(made): made, **result.payloads()}


def tell(
    pipeline: Pipeline,
    put: Put,
    *results: CompileResult,
    run: str = RUN,
    keep_payloads: bool = True,
    cached: int = 0,
) -> None:
    """Export a run: an agent, and for each compile (span 2, 12, …) its model call (span 3, 13, …).

    Span 4 and 5 are the tools whose results the compiles weigh.
    """
    trace = Trace(run)
    trace.agent(1, duration_s=12)
    payloads: dict[str, bytes] = {}
    for turn, result in enumerate(results or (compiled(run=run),)):
        number, at_s = 2 + 10 * turn, 0.1 + 2 * turn
        payloads |= compile_span(trace, result, number, 1, at_s)
        wire = json.dumps({"model": "gpt-4o-mini", "input": result.payload["messages"]}).encode()
        payloads[ref_of(wire)] = wire
        trace.chat(
            number + 1, 1, [said("user", "Make the failing test pass.")],
            said("assistant", "Done."), at_s + 0.1,
            tokens=(round(result.token_allocation["used"] * 1.01), 40),
            hansard__compilation__id=result.id,
            hansard__request__ref=ref_of(wire),
            gen_ai__usage__cache_read__input_tokens=cached,
        )  # fmt: skip
    trace.tool(4, 1, "search_docs", "call_3", 0.01, result="6 hits")
    trace.tool(5, 1, "run_tests", "call_4", 0.05, result="1 failed, 46 passed")
    if keep_payloads:
        for data in payloads.values():
            put(data, "application/octet-stream")
    trace.send(pipeline)
