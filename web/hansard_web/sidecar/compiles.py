"""Compiles for programs without the SDK: the SDK's own compile, kept by the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from hansard._context.compile import compile_into
from hansard._context.compiled_step import CompiledStep
from hansard._context.policies import PolicyLike
from hansard_collector.dialects.engine.references import stored_payloads
from hansard_compiler.calls import Json
from hansard_compiler.policy.checks import PolicyCheck
from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.rules import parse_rules
from hansard_store.content.payloads import parse_payload_ref, read_payload
from hansard_web.policy.service import InForce
from hansard_web.sidecar.addresses import Place
from hansard_web.sidecar.compile_bodies import AskCompile
from hansard_web.sidecar.errors import NotKept
from hansard_web.sidecar.idempotency import Done
from hansard_web.sidecar.request import Door
from hansard_web.sidecar.runs import input_refs


def compile_step(door: Door, asked: AskCompile, current: InForce) -> Done:
    """Compile for a step, and answer with every receipt. Raises CompileError; it is told then."""
    place = door.sidecar.place(asked.run_id, asked.step_id)
    items = [*_inputs(door, place), *asked.context_items]
    recording = door.sidecar.outlet.recording(place.resource)
    try:
        compiled = compile_into(
            recording.recorder,
            place.trace_id,
            place.step_id,
            items,
            model=asked.model,
            provider=asked.provider,
            token_budget=asked.token_budget,
            response_reserve=asked.response_reserve,
            tools=asked.tools,
            memory=asked.memory_records,
            policy=_policy(asked, current),
            config=_config(asked, place),
            task_summary=asked.task_summary,
            now=asked.now,
            relevance=asked.relevance,
        )
    finally:
        recording.save()
    kept = {
        "run_id": place.trace_id,
        "step_id": compiled.recorded.step_id,
        "compilation_id": compiled.id,
        "request_ref": compiled.recorded.request_ref or None,
        "result_ref": compiled.recorded.result_ref or None,
        "policy": _policy_body(compiled),
    }
    return Done(kept, {"compiled": _as_stored(door, compiled)})


def _as_stored(door: Door, compiled: CompiledStep) -> Any:
    """Return the compiled context as the store has it: without secrets in ids and names, too.

    A repeated request is answered with the same. Where retention stores no content, secrets are
    cut out all the same.
    """
    if compiled.recorded.result_ref:
        return read_json(door, compiled.recorded.result_ref, what="the compiled context")
    plain = orjson.dumps(compiled.context.model_dump(mode="json"))
    return orjson.loads(door.sidecar.outlet.redactor.redact_bytes(plain).data)


def compiled_again(door: Door, kept: Json) -> Mapping[str, Any]:
    """Return the content of an earlier answer; raises NotKept where it is gone."""
    return {"compiled": read_json(door, kept.get("result_ref"), what="the compiled context")}


def read_json(door: Door, ref: object, *, what: str) -> Any:
    """Return a payload's JSON; raises NotKept where it is not here."""
    if isinstance(ref, str):
        with door.sidecar.readers.read() as connection:
            named = [("", parse_payload_ref(ref))]
            for _, payload in stored_payloads(connection, named):
                return orjson.loads(read_payload(door.site.folder, payload))
    raise NotKept(f"{what} was not kept: the retention mode forbids it, or it was deleted")


def _inputs(door: Door, place: Place) -> list[Any]:
    found: list[Any] = []
    for ref in input_refs(place):
        found += read_json(door, ref, what="an input of the step")
    return found


def _policy(asked: AskCompile, current: InForce) -> PolicyLike | None:
    """Return the rules that decide: those in force, and the request's own beside them."""
    in_force = [one.read for one in (*current.put, *(given for _, given in current.read))]
    if not in_force:
        return asked.policy_rules or None  # rules alone travel with the stored request
    rules = parse_rules(asked.policy_rules, rule_set="request", where="policy_rules")
    return Policy(in_force, rules=rules)


def _config(asked: AskCompile, place: Place) -> Json:
    agent = place.run.agent_name
    return {**({"agent": agent} if agent else {}), **asked.compile_config}


def _policy_body(compiled: CompiledStep) -> Json:
    return {
        "checks": len(compiled.checks),
        "denied": _subjects(compiled.denied),
        "approvals_needed": _subjects(compiled.approvals_needed),
    }


def _subjects(checks: Sequence[PolicyCheck]) -> list[Json]:
    return [
        {"item_id": check.facts["item"]["id"], "rule_id": check.rule_id} for check in checks[:1000]
    ]
