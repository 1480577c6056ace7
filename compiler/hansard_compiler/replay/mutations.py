"""What a replay may change: an explicit, ordered list, stored with the replay.

Each is one operation named by `op`. Those on a compile (budget, weights, policy, items, memories,
sources) need the stored compile request; those on messages work on any call that was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from hansard_compiler.compile.models import Id, Json, Model
from hansard_compiler.models.json_schema import A_NUMBER, Real, Whole
from hansard_compiler.models.runs import ReplayRecipe
from hansard_compiler.replay.errors import NotReplayable, ReplayReason

MOST: Final = 100  # of one replay
Position: TypeAlias = Annotated[int, Field(ge=0), A_NUMBER]


class SetModel(Model):
    """Ask another model."""

    op: Literal["set_model"]
    model: Id


class SetProvider(Model):
    """Ask another provider, through its adapter."""

    op: Literal["set_provider"]
    provider: Id


class SetSampling(Model):
    """Answer otherwise: `temperature`, `max_output_tokens`, `effort` …; null takes it away."""

    op: Literal["set_sampling"]
    max_output_tokens: Annotated[int, Field(gt=0), A_NUMBER] | None = None
    temperature: Real | None = None
    top_p: Real | None = None
    seed: Whole | None = None
    effort: str | None = None
    stop: list[str] | None = None


class SetBudget(Model):
    """Compile for another number of tokens."""

    op: Literal["set_budget"]
    token_budget: Annotated[int, Field(ge=0), A_NUMBER] | None = None
    response_reserve: Annotated[int, Field(ge=0), A_NUMBER] | None = None


class SetWeights(Model):
    """Score with other weights; those not named stay."""

    op: Literal["set_weights"]
    weights: dict[str, Real]


class SetPolicy(Model):
    """Decide by these rules in place of those of the compile; none of them: everything is shown."""

    op: Literal["set_policy"]
    rules: list[Json]


class RemoveMemory(Model):
    """Leave out a memory; without an id, all of them."""

    op: Literal["remove_memory"]
    memory_id: Id | None = None


class RemoveSource(Model):
    """Leave out everything from a source: a type, a URI or a title, or `type URI`."""

    op: Literal["remove_source"]
    source: Id


class AddItem(Model):
    """Add a candidate, last or at a position among the context items."""

    op: Literal["add_item"]
    item: Json
    position: Position | None = None


class EditItem(Model):
    """Give an item another content."""

    op: Literal["edit_item"]
    item_id: Id
    content: Json | str


class RemoveItem(Model):
    """Leave out an item: context item, memory or tool (`tool:NAME`)."""

    op: Literal["remove_item"]
    item_id: Id


class EditMessage(Model):
    """Give a message other words; its tool calls and results stay.

    Of a message with several texts, `part` (from 0) edits that one and leaves the others.
    """

    op: Literal["edit_message"]
    position: Position
    text: str
    part: Position | None = None


class RemoveMessage(Model):
    """Leave out a message, and with it the results of its calls, or the calls of its results."""

    op: Literal["remove_message"]
    position: Position


class AddMessage(Model):
    """Say something more, last or at a position."""

    op: Literal["add_message"]
    role: Literal["system", "user", "assistant"]
    text: Annotated[str, Field(min_length=1)]
    position: Position | None = None


class RemoveTool(Model):
    """Take a tool off the list of those on offer."""

    op: Literal["remove_tool"]
    name: Id


Mutation: TypeAlias = Annotated[
    SetModel
    | SetProvider
    | SetSampling
    | SetBudget
    | SetWeights
    | SetPolicy
    | RemoveMemory
    | RemoveSource
    | AddItem
    | EditItem
    | RemoveItem
    | EditMessage
    | RemoveMessage
    | AddMessage
    | RemoveTool,
    Field(discriminator="op"),
]
ON_COMPILES = (SetBudget, SetWeights, SetPolicy, RemoveMemory, RemoveSource, AddItem, EditItem,
               RemoveItem)  # fmt: skip


_LIST: TypeAdapter[list[Mutation]] = TypeAdapter(list[Mutation])


def parse_mutations(changes: Sequence[Any]) -> list[Mutation]:
    """Return checked mutations; raises NotReplayable with the place of the first problem."""
    if len(changes) > MOST:
        raise NotReplayable(
            ReplayReason.MUTATION_INVALID, f"{len(changes)} changes; at most {MOST}"
        )
    try:
        return _LIST.validate_python(list(changes))
    except ValidationError as wrong:
        first = wrong.errors(include_url=False, include_input=False, include_context=False)[0]
        at, *inside = map(str, first["loc"])
        where = ".".join(inside[1:]) or ".".join(inside)
        position = f"change {int(at) + 1}" + (f", {where}" if where else "")
        raise NotReplayable(ReplayReason.MUTATION_INVALID, f"{position}: {first['msg']}") from None


def plain_change(one: Mutation) -> Json:
    """Return a change as it was sent: a null that takes something away stays."""
    return one.model_dump(mode="json", exclude_unset=True)


def recipe_of(
    replay_id: str, run_id: str, step_id: str, mutations: Sequence[Mutation], notes: str | None
) -> ReplayRecipe:
    """Return the stored form; the last override of a kind counts, items keep their order."""
    overrides: Json = {}
    compile_overrides: Json = {}
    for one in mutations:
        if isinstance(one, SetModel):
            overrides["model_override"] = one.model
        elif isinstance(one, SetProvider):
            overrides["provider_override"] = one.provider
        elif isinstance(one, SetBudget | SetWeights | SetPolicy):
            compile_overrides |= one.model_dump(mode="json", exclude={"op"}, exclude_none=True)
    return ReplayRecipe(
        replay_id=replay_id,
        source_run_id=run_id,
        source_step_id=step_id,
        compile_overrides=compile_overrides,
        context_mutations=[plain_change(one) for one in mutations],
        notes=notes,
        **overrides,
    )
