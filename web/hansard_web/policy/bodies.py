"""Policy as programs ask for it: bodies of the API, and what they become."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from hansard_compiler.calls import Json
from hansard_compiler.models.json_schema import A_NUMBER, any_of, exactly_one
from hansard_compiler.policy.checks import PolicyCheck
from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.facts import ItemFacts, PolicyContext, ToolFacts

Name = Annotated[str, Field(min_length=1, max_length=4096)]
Sensitivity = Literal["public", "internal", "restricted", "secret"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ContextInput(_Part):
    """Who asks, for what, and where; what is left out is not known, and no rule on it fits."""

    agent: Name | None = None
    task_type: Name | None = None
    provider: Name | None = None
    model: Name | None = None
    environment: Name | None = None
    user: Name | None = None
    project: Name | None = None
    metadata: dict[str, Any] = {}


class ToolInput(_Part):
    """A tool call that is to be made."""

    name: Name
    # Rules call it `tool_class`; version 0.1 took `class` alone.
    tool_class: Annotated[
        Name | None, Field(validation_alias=AliasChoices("tool_class", "class"))
    ] = None
    effect: Literal["read", "write"] | None = None
    arguments: dict[str, Any] = {}
    sensitivity: Sensitivity | None = None
    scope: dict[str, Any] = {}


class ItemInput(_Part):
    """An item that is to be seen; policy never needs its content."""

    id: Name
    kind: Name | None = None
    sensitivity: Sensitivity | None = None
    source_type: Name | None = None
    source_uri: Name | None = None
    tags: list[Name] = []
    trust_score: Annotated[float, Field(ge=0, le=1), A_NUMBER] | None = None
    importance_score: Annotated[float, Field(ge=0, le=1), A_NUMBER] | None = None
    tokens: Annotated[int, Field(ge=0), A_NUMBER] | None = None
    scope: dict[str, Any] = {}
    metadata: dict[str, Any] = {}


class PolicyInput(_Part):
    """May this tool be called, or this item be seen? Exactly one of the two is asked about."""

    model_config = ConfigDict(json_schema_extra=any_of(*exactly_one("tool", "item")))

    schema_version: Literal["1"] = "1"
    context: ContextInput = ContextInput()
    tool: ToolInput | None = None
    item: ItemInput | None = None
    run_id: Name | None = None  # the check is recorded in this run, too
    step_id: Name | None = None
    explain: bool = False  # a dry run: nothing is recorded, every rule says how it came out

    @model_validator(mode="after")
    def _one_subject(self) -> Self:
        if (self.tool is None) == (self.item is None):
            raise ValueError("ask about a tool or about an item: one of the two")
        return self

    def check(self, policy: Policy, *, agent: str | None = None) -> PolicyCheck:
        """Return what the rules decide; `agent` is the run's, where the context names none."""
        context = self._context(agent)
        if self.tool is not None:
            return policy.check_tool(context, ToolFacts(**self.tool.model_dump()))
        assert self.item is not None
        return policy.check_item(context, ItemFacts(**self.item.model_dump()))

    def explained(self, policy: Policy, *, agent: str | None = None) -> Json:
        """Return how every rule came out, and what would be decided."""
        context = self._context(agent)
        if self.tool is not None:
            return policy.explain_tool(context, ToolFacts(**self.tool.model_dump()))
        assert self.item is not None
        return policy.explain_item(context, ItemFacts(**self.item.model_dump()))

    def _context(self, agent: str | None) -> PolicyContext:
        context = self.context.model_dump()
        return PolicyContext(**{**context, "agent": context["agent"] or agent})


class PutRules(_Part):
    """The rule sets that are to be in force, all of them: each a set, or `shipped:NAME`."""

    schema_version: Literal["1"] = "1"
    rule_sets: list[
        Annotated[dict[str, Any] | str, Field(json_schema_extra={"format": "rule-set"})]
    ] = Field(max_length=100, json_schema_extra={"uniqueItems": True})
    version: Annotated[int, Field(ge=0), A_NUMBER] | None = None  # that they replace; or If-Match
