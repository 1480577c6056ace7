"""Compiles for programs without the SDK: the SDK's own compile, recorded by the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from hansard import semconv
from hansard._context.compile import compile_into
from hansard._context.compiled_step import CompiledStep, RecordedCompile
from hansard._context.policies import PolicyLike
from hansard_collector.derivation.rederivation import read_span
from hansard_collector.dialects.engine.references import stored_payloads
from hansard_compiler.calls import Json
from hansard_compiler.compile.models import CompiledContext
from hansard_compiler.errors import NotFoundError
from hansard_compiler.policy.checks import PolicyCheck
from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.rules import parse_rules
from hansard_store.bodies import Answer, Body
from hansard_store.compilations.queries import Compilation, compilations_with_id
from hansard_store.content.payloads import parse_payload_ref, read_payload
from hansard_web.policy.service import RulesInForce
from hansard_web.sidecar.bodies import CompileInput
from hansard_web.sidecar.errors import NotRetained
from hansard_web.sidecar.idempotency import Done
from hansard_web.sidecar.request import Place, SidecarService
from hansard_web.sidecar.runs import input_refs


class Denied(Body):
    """An item that policy kept out, and the rule that did."""

    item_id: str
    rule_id: str | None


class PolicyOfCompile(Body):
    """How many checks were made, and what they kept out."""

    checks: int
    denied: list[Denied]
    approvals_needed: list[Denied]


class CompileRecord(Body):
    """What is stored of a compile under the key of its request."""

    run_id: str
    step_id: str
    compilation_id: str
    request_ref: str | None
    result_ref: str | None
    policy: PolicyOfCompile


class CompiledAnswer(CompileRecord, Answer):
    """A compile: `compiled` has every receipt and the payload that a model call takes."""

    compiled: CompiledContext


def compile_step(service: SidecarService, request: CompileInput, current: RulesInForce) -> Done:
    """Compile for a step, and answer with every receipt. Raises CompileError, recorded too."""
    open_step = service.place(request.run_id, request.step_id)
    items = [*_inputs(service, open_step), *request.context_items]
    recording = service.outlet.recording(open_step.resource)
    try:
        compiled = compile_into(
            recording.recorder,
            open_step.trace_id,
            open_step.step_id,
            items,
            model=request.model,
            provider=request.provider,
            token_budget=request.token_budget,
            response_reserve=request.response_reserve,
            tools=request.tools,
            memory=request.memory_records,
            policy=_policy(request, current),
            config=_config(request, open_step),
            task_summary=request.task_summary,
            now=request.now,
            relevance=request.relevance,
        )
    finally:
        recording.save()
    record: CompileRecord = {
        "run_id": open_step.trace_id,
        "step_id": compiled.recorded.step_id,
        "compilation_id": compiled.id,
        "request_ref": compiled.recorded.request_ref or None,
        "result_ref": compiled.recorded.result_ref or None,
        "policy": _policy_body(compiled),
    }
    return Done(record, {"compiled": _as_stored(service, compiled)})


def _as_stored(service: SidecarService, compiled: CompiledStep) -> Any:
    """Return the compiled context as the store has it: without secrets in ids and names, too.

    A repeated request is answered with the same. Where retention stores no content, secrets are
    cut out all the same.
    """
    if compiled.recorded.result_ref:
        return read_json(service, compiled.recorded.result_ref, what="the compiled context")
    plain = orjson.dumps(compiled.context.model_dump(mode="json"))
    return orjson.loads(service.outlet.redactor.redact_bytes(plain).data)


def compiled_again(service: SidecarService, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content of an earlier answer; raises NotRetained where it is gone."""
    return {"compiled": read_json(service, record.get("result_ref"), what="the compiled context")}


def read_json(service: SidecarService, ref: object, *, what: str) -> Any:
    """Return a payload's JSON; raises NotRetained where it is not here."""
    if isinstance(ref, str):
        with service.site.readers.read() as connection:
            named = [("", parse_payload_ref(ref))]
            for _, payload in stored_payloads(connection, named):
                return orjson.loads(read_payload(service.site.folder, payload))
    raise NotRetained(f"{what} was not kept: the retention mode forbids it, or it was deleted")


def _inputs(service: SidecarService, open_step: Place) -> list[Any]:
    found: list[Any] = []
    for ref in input_refs(open_step):
        found += read_json(service, ref, what="an input of the step")
    return found


def _policy(request: CompileInput, current: RulesInForce) -> PolicyLike | None:
    """Return the rules that decide: those in force, and the request's own beside them."""
    in_force = [one.read for one in (*current.put, *(rule_set for _, rule_set in current.read))]
    if not in_force:
        return request.policy_rules or None  # rules alone travel with the stored request
    rules = parse_rules(request.policy_rules, rule_set="request", where="policy_rules")
    return Policy(in_force, rules=rules)


def _config(request: CompileInput, open_step: Place) -> Json:
    agent = open_step.run.agent_name
    return {**({"agent": agent} if agent else {}), **request.compile_config}


def _policy_body(compiled: CompiledStep) -> PolicyOfCompile:
    return {
        "checks": len(compiled.checks),
        "denied": _subjects(compiled.denied),
        "approvals_needed": _subjects(compiled.approvals_needed),
    }


def _subjects(checks: Sequence[PolicyCheck]) -> list[Denied]:
    return [
        {"item_id": check.facts["item"]["id"], "rule_id": check.rule_id} for check in checks[:1000]
    ]


# A compile of an earlier request, read back from the store, to be sent to a model.


class RecalledStep(CompiledStep):
    """What a model call needs of a compile; why each item is in it, the receipts tell."""

    def __init__(
        self, compilation: Compilation, context: Mapping[str, Any], recorded: RecordedCompile
    ) -> None:
        self.checks = ()
        self.adapter = None
        self.otel_context = None
        self.recorded = recorded
        self._row = compilation.row
        self._context = context

    @property
    def payload(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._context["rendered_payload"]
        return found

    @property
    def id(self) -> str:
        return self._row.id

    @property
    def hash(self) -> str:
        return self._row.hash or ""

    @property
    def stable_prefix_hash(self) -> str:
        return self._row.stable_prefix_hash or ""

    @property
    def volatile_suffix_hash(self) -> str:
        return self._row.volatile_suffix_hash or ""

    @property
    def provider(self) -> str:
        return str(self._context["provider"])

    @property
    def model(self) -> str:
        return str(self._context["model"])


def recall(service: SidecarService, open_step: Place, compilation_id: str) -> RecalledStep:
    """Return a compile of this run.

    Raises NotFoundError, or NotRetained where its result is gone.
    """
    with service.site.readers.read() as connection:
        found = [
            one
            for one in compilations_with_id(connection, compilation_id)
            if one.run_id == open_step.trace_id
        ]
        if not found:
            raise NotFoundError("compilation of this run", compilation_id)
        attributes = read_span(connection, found[0].span).view().attributes
    compilation = found[0]
    context = read_json(service, compilation.row.result_ref, what="the compiled context")
    ports = attributes.get(semconv.COMPILE_PORTS)
    recorded = RecordedCompile(
        step_id=compilation.step_id,
        request_ref=compilation.row.request_ref or "",
        result_ref=compilation.row.result_ref or "",
        is_whole=attributes.get(semconv.COMPILE_WHOLE) is True,
        ports=tuple(map(str, ports)) if isinstance(ports, list) else (),
    )
    return RecalledStep(compilation, context, recorded)
