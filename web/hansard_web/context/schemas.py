"""What a compile and a model call answer."""

from __future__ import annotations

from typing import Any

from hansard_compiler.compile.models import CompiledContext
from hansard_store.bodies import Answer, Body


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


class Said(Body):
    """What a model said; `message` is its answer as an input of the next compile."""

    text: str
    tool_calls: list[dict[str, Any]]
    output: list[dict[str, Any]]
    message: dict[str, Any]


class CallRecord(Body):
    """What is stored of a model call under the key of its request."""

    run_id: str
    step_id: str | None
    compilation_id: str | None
    provider: str | None
    response_model: str | None
    response_id: str | None
    finish_reason: str | None
    tokens: dict[str, int]
    estimated_input_tokens: int | None
    incomplete_reason: str | None
    request_ref: str | None
    response_ref: str | None
    recipe_ref: str | None


class CalledModel(CallRecord, Answer):
    """A model's answer. Sent again under its key, `answer` is null and `response_ref` has it."""

    answer: Said | None
