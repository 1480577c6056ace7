"""A compiled step: what was chosen for one model call, and why, for every candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hansard_compiler.calls import Json
from hansard_compiler.compile.passes.layout import STABLE, VOLATILE
from hansard_compiler.compile.passes.score import weights_milli
from hansard_compiler.compile.receipts import decision_of
from hansard_compiler.errors import NotFoundError

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from hansard_compiler.compile.engine import CompileResult
    from hansard_compiler.compile.models import CompilationDecision, CompiledContext
    from hansard_compiler.compile.state import Receipt
    from hansard_compiler.policy.checks import PolicyCheck
    from hansard_compiler.providers.adapter import Adapter
    from hansard_compiler.providers.base import RenderInput


@dataclass(frozen=True, slots=True)
class RecordedCompile:
    """What the record has of a compile; empty texts where nothing is recorded."""

    step_id: str = ""  # of the compile's own span
    request_ref: str = ""
    result_ref: str = ""
    is_whole: bool = False  # compiled again, what `request_ref` names gives the same hash
    ports: tuple[str, ...] = ()  # the compile's ports beside its request


NOT_RECORDED = RecordedCompile()


@dataclass(frozen=True)
class _Why:
    """The outcome of one item. As a text: a sentence."""

    receipt: CompilationDecision
    trail: Sequence[Json]  # what each pass that saw it said

    @property
    def is_included(self) -> bool:
        """Whether the model gets to see it, whole or in part."""
        return self.receipt.final_ref is not None

    def __str__(self) -> str:
        receipt = self.receipt
        words = [
            f"{receipt.item_id}: {receipt.decision} ({receipt.reason_code}, "
            f"pass {receipt.pass_name})"
        ]
        if receipt.original_tokens is not None:
            words.append(f"{receipt.original_tokens} -> {receipt.final_tokens} tokens")
        if receipt.missed_by_tokens:
            words.append(f"{receipt.missed_by_tokens} tokens too many")
        if receipt.rule_ids:
            words.append(f"rules {', '.join(receipt.rule_ids)}")
        if receipt.related_item_id:
            words.append(f"see {receipt.related_item_id}")
        return "; ".join([*words, *([receipt.notes] if receipt.notes else [])])


class CompiledStep:
    """The context of one model call, chosen and laid out: pass it to `call_model`."""

    __module__ = "hansard"  # where programs find it

    def __init__(
        self,
        result: CompileResult,
        *,
        checks: Sequence[PolicyCheck] = (),
        adapter: Adapter | None = None,
        context: Context | None = None,
        recorded: RecordedCompile = NOT_RECORDED,
    ) -> None:
        self.result = result
        self.checks = tuple(checks)  # every policy check, allows included
        self.adapter = adapter  # the one the compile was made for, where there is one
        self.otel_context = context  # where in the tree the step is
        self.recorded = recorded

    # ---- what was chosen

    @property
    def payload(self) -> Mapping[str, Any]:
        """The provider-neutral request: `system`, `tools`, `messages`, and where sections end."""
        return self.result.payload

    @property
    def messages(self) -> list[Json]:
        """The messages, each `{role, parts}`."""
        return list(self.payload["messages"])

    @property
    def system(self) -> list[str]:
        """The system instructions."""
        return [entry["text"] for entry in self.payload["system"]]

    @property
    def tools(self) -> list[Json]:
        """The definitions of the tools on offer."""
        return list(self.payload["tools"])

    @property
    def selected(self) -> list[str]:
        """Ids of what went in."""
        return [one.item_id for one in self.receipts if one.final_ref is not None]

    # ---- why

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """One for every candidate, in the order in which they came."""
        return self.result.receipts

    @cached_property
    def context(self) -> CompiledContext:
        """The whole result in the form in which it is stored and sent."""
        return self.result.context()

    def why(self, item_id: str) -> _Why:
        """Return the outcome of an item; raises NotFoundError where it was no candidate."""
        receipt = self._by_id.get(item_id)
        if receipt is None:
            raise NotFoundError("context item", item_id)
        weights = weights_milli(self.result.request.compile_config.weights)
        decision = decision_of(receipt, weights, scorer=self.result.scorer)
        return _Why(decision, self.result.trail(item_id))

    @cached_property
    def _by_id(self) -> dict[str, Receipt]:
        return {one.item_id: one for one in self.receipts}

    @property
    def denied(self) -> list[PolicyCheck]:
        """The checks that policy denied."""
        return [check for check in self.checks if check.is_denied]

    @property
    def approvals_needed(self) -> list[PolicyCheck]:
        """The checks that wait for a person; what they are about was left out."""
        return [check for check in self.checks if check.needs_approval and not check.is_denied]

    # ---- in numbers

    @property
    def id(self) -> str:
        return self.result.id

    @property
    def hash(self) -> str:
        """The same for the same input and configuration, in any process, on any day."""
        return self.result.compile_hash

    @property
    def stable_prefix_hash(self) -> str:
        return self.result.section(STABLE).hash

    @property
    def volatile_suffix_hash(self) -> str:
        return self.result.section(VOLATILE).hash

    @property
    def tokens(self) -> Mapping[str, Any]:
        """The budget: `budget`, `reserve`, `available`, `used`, `free`; by class, by section."""
        return self.result.token_allocation

    @property
    def provider(self) -> str:
        return self.result.request.provider

    @property
    def model(self) -> str:
        return self.result.request.model

    # ---- for a provider

    def render_input(self, *, model: str | None = None, **more: Any) -> RenderInput:
        """Return what an adapter renders; `more` are further fields of RenderInput."""
        from hansard_compiler.providers.base import from_payload

        return from_payload(self.payload, model=model or self.model, **more)

    def render(self, provider: str | Adapter | None = None, **options: Any) -> Json:
        """Return the body of the request as a provider would get it; nothing is sent.

        Takes the options of `call_model`. Raises RequestRefused where the provider's API has no
        form for something in it.
        """
        from hansard._models.call import adapter_of, render_input_of

        adapter = adapter_of(provider, self)
        return adapter.render_request(render_input_of(self, **options))
