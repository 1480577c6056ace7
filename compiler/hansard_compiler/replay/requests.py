"""A stored compile request with changes: what is removed stays a candidate, with the reason.

So the receipts of the replay have one for every item of the original, and the two compare item by
item: nothing disappears without a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from hansard_compiler.compile.config import Weights
from hansard_compiler.compile.errors import InvalidInput
from hansard_compiler.compile.inputs import context_item_data
from hansard_compiler.compile.items import from_tool, source_of_memory
from hansard_compiler.compile.models import (
    CompilationRequest,
    ContextItem,
    Json,
    MemoryRecord,
    PolicyRule,
    first_problem,
    parse,
)
from hansard_compiler.compile.state import Section
from hansard_compiler.policy.errors import PolicyRuleError
from hansard_compiler.policy.rules import parse_rules
from hansard_compiler.replay import mutations as change
from hansard_compiler.replay.errors import NotReplayable, ReplayReason

MEMORY_KIND = "memory"


def mutate_request(
    request: CompilationRequest, mutations: Sequence[change.Mutation]
) -> CompilationRequest:
    """Return the request with changes applied in order; those on messages are not for here.

    Raises NotReplayable: a change that names what is not there, or that cannot be meant.
    """
    for number, one in enumerate(mutations, 1):
        apply = _APPLY.get(type(one))
        if apply is None:
            continue
        try:
            request = apply(request, one)
        except (ValidationError, InvalidInput, PolicyRuleError) as error:
            problem = first_problem(error) if isinstance(error, ValidationError) else str(error)
            detail = f"change {number} ({one.op}): {problem}"
            raise NotReplayable(ReplayReason.MUTATION_INVALID, detail) from None
    return request


# ---- one function a change


def _set_fields(
    request: CompilationRequest, one: change.SetModel | change.SetProvider | change.SetBudget
) -> CompilationRequest:
    return request.model_copy(update=one.model_dump(exclude={"op"}, exclude_none=True))


def _set_weights(request: CompilationRequest, one: change.SetWeights) -> CompilationRequest:
    config = request.compile_config
    weights = Weights.model_validate({**config.weights.model_dump(), **one.weights})
    return request.model_copy(
        update={"compile_config": config.model_copy(update={"weights": weights})}
    )


def _set_policy(request: CompilationRequest, one: change.SetPolicy) -> CompilationRequest:
    rules = [parse(PolicyRule, {"name": rule.get("id"), **rule}) for rule in one.rules]
    parse_rules([rule.model_dump() for rule in rules])  # refused here, not in the compile
    return request.model_copy(update={"policy_rules": rules})


def _remove_memory(request: CompilationRequest, one: change.RemoveMemory) -> CompilationRequest:
    known = [record.id for record in request.memory_records]
    known += [item.id for item in request.context_items if item.kind == MEMORY_KIND]
    if one.memory_id is None:
        return _without(request, known, what="memory")
    return _without(request, [one.memory_id] if one.memory_id in known else [], what=one.memory_id)


def _remove_source(request: CompilationRequest, one: change.RemoveSource) -> CompilationRequest:
    found = [item_id for item_id, names in _sources(request) if one.source in names]
    return _without(request, found, what=f"source {one.source}")


def _remove_item(
    request: CompilationRequest, one: change.RemoveItem | change.RemoveTool
) -> CompilationRequest:
    item_id = one.item_id if isinstance(one, change.RemoveItem) else f"tool:{one.name}"
    return _without(request, [item_id] if item_id in item_ids(request) else [], what=item_id)


def _without(request: CompilationRequest, found: Sequence[str], *, what: str) -> CompilationRequest:
    if not found:
        raise NotReplayable(ReplayReason.ITEM_UNKNOWN, f"{what!r} is no candidate of this compile")
    removed = dict.fromkeys((*request.removed_items, *found))
    return request.model_copy(update={"removed_items": list(removed)})


def _add_item(request: CompilationRequest, one: change.AddItem) -> CompilationRequest:
    fields = dict(one.item)
    if fields.get("kind"):
        fields.setdefault("created_at", request.now)
        fields.setdefault("source_ref", {"source_type": "user", "title": "added in a replay"})
    data = context_item_data(fields, now=request.now, seen=Counter())
    item = parse(ContextItem, data)
    if item.id in item_ids(request):
        raise NotReplayable(ReplayReason.MUTATION_INVALID, f"an item {item.id!r} is there already")
    items = list(request.context_items)
    items.insert(len(items) if one.position is None else one.position, item)
    return request.model_copy(update={"context_items": items})


def _edit_item(request: CompilationRequest, one: change.EditItem) -> CompilationRequest:
    if one.item_id.startswith("tool:"):
        return _edit_tool(request, one)
    items = [_edited(item, ContextItem, one) for item in request.context_items]
    memories = [_edited(record, MemoryRecord, one) for record in request.memory_records]
    changed = {"context_items": items, "memory_records": memories}
    if one.item_id not in item_ids(request):
        raise NotReplayable(
            ReplayReason.ITEM_UNKNOWN, f"{one.item_id!r} is no candidate of this compile"
        )
    return request.model_copy(update=changed)


def _edited(item: Any, model: type[Any], one: change.EditItem) -> Any:
    if item.id != one.item_id:
        return item
    data = item.model_dump()
    data.pop("stable_hash", None)
    return parse(model, {**data, "content": one.content})


def _edit_tool(request: CompilationRequest, one: change.EditItem) -> CompilationRequest:
    if not isinstance(one.content, dict):
        raise NotReplayable(ReplayReason.MUTATION_INVALID, f"{one.item_id}: a tool is an object")
    names = [from_tool(spec, position=0).id for spec in request.tool_specs]
    if one.item_id not in names:
        raise NotReplayable(
            ReplayReason.ITEM_UNKNOWN, f"{one.item_id!r} is no candidate of this compile"
        )
    specs = [
        one.content if name == one.item_id else spec
        for name, spec in zip(names, request.tool_specs, strict=True)
    ]
    return request.model_copy(update={"tool_specs": specs})


_APPLY: Mapping[type[Any], Callable[[CompilationRequest, Any], CompilationRequest]] = {
    change.SetModel: _set_fields,
    change.SetProvider: _set_fields,
    change.SetBudget: _set_fields,
    change.SetWeights: _set_weights,
    change.SetPolicy: _set_policy,
    change.RemoveMemory: _remove_memory,
    change.RemoveSource: _remove_source,
    change.RemoveItem: _remove_item,
    change.RemoveTool: _remove_item,
    change.AddItem: _add_item,
    change.EditItem: _edit_item,
}


# ---- what is in a request


def item_ids(request: CompilationRequest) -> list[str]:
    """Return the ids of all candidates, in the order of the compile."""
    return [
        *(item.id for item in request.context_items),
        *(record.id for record in request.memory_records),
        *(from_tool(spec, position=0).id for spec in request.tool_specs),
    ]


def _sources(request: CompilationRequest) -> Iterator[tuple[str, set[str]]]:
    """Yield each candidate's id and the names its source goes by."""
    for item in request.context_items:
        ref = item.source_ref
        if ref is None:
            continue
        where = [one for one in (ref.uri, ref.title) if one]
        kind = ref.source_type
        yield item.id, {kind, *where, *(f"{kind} {one}" for one in where)}
    for record in request.memory_records:
        uri, ref = f"memory:{record.id}", source_of_memory(record)
        named = {ref.source_type, str(ref.uri), f"{ref.source_type} {ref.uri}"}
        yield record.id, {"memory", uri, record.subject, f"memory {uri}", *named}


def item_of_message(sections: Sequence[Section], position: int) -> str | None:
    """Return the item that alone makes up a message of the rendered request, None where several do.

    `position` counts the messages; system texts and tools are none.
    """
    holders: list[list[str]] = []
    for section in sections:
        is_open = False
        for entry in section.entries:
            if "role" in entry:
                holders.append([str(entry["item_id"])])
                is_open = False
            elif "tool" not in entry and section.name != "stable_prefix":
                if is_open:
                    holders[-1].append(str(entry["item_id"]))
                else:
                    holders.append([str(entry["item_id"])])
                is_open = True
    if position >= len(holders):
        raise NotReplayable(
            ReplayReason.ITEM_UNKNOWN, f"message {position}: the request has {len(holders)}, from 0"
        )
    return holders[position][0] if len(holders[position]) == 1 else None


def with_text(content: Json | str, text: str) -> Json | str:
    """Return a content with another text; its tool calls and results stay."""
    parts = content.get("parts") if isinstance(content, Mapping) else None
    if not isinstance(parts, list):
        return text
    others = [part for part in parts if not _is_text(part)]
    text_part: Json = {"type": "text", "text": text}
    at = next((number for number, part in enumerate(parts) if _is_text(part)), 0)
    return {**content, "parts": [*others[:at], text_part, *others[at:]]}  # type: ignore[dict-item]


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text"
