"""Pass 4: find what belongs together and what needs what, among the candidates left."""

from __future__ import annotations

from dataclasses import replace

from hansard_compiler.compile_errors import DependencyCycle
from hansard_compiler.dependencies import Groups, inseparable, refuse_orphans, rings
from hansard_compiler.reasons import ReasonCode
from hansard_compiler.state import State, Told


def run(state: State) -> State:
    """Group calls, results and reasoning; resolve dependencies, at any depth.

    Raises OrphanToolResult, and DependencyCycle unless `cycles` is `together`: then a ring is one
    group, as is one that only came about because copies were dropped. A dependency that is no
    candidate is told in the note of what needs it.
    """
    refuse_orphans(state.items)
    present = {item.id for item in state.live}
    told: dict[str, Told] = {}
    needs: dict[str, tuple[str, ...]] = {}
    for item in state.live:
        if item.dependencies:
            wanted = [state.aliases.get(one, one) for one in item.dependencies]
            needs[item.id] = tuple(dict.fromkeys(one for one in wanted if one in present))
            if item.id in needs[item.id] and item.id not in item.dependencies:
                # What it needs is a copy of it.
                needs[item.id] = tuple(one for one in needs[item.id] if one != item.id)
            absent = [one for one in wanted if one not in present]
            if absent:
                note = "depends on what is no candidate: " + ", ".join(absent[:5])
                told[item.id] = Told("include", ReasonCode.CONSIDERED, note)
    groups = _with_rings(state, needs)
    needs = {one: wanted for one, wanted in needs.items() if wanted}
    usual = Told("include", ReasonCode.CONSIDERED)
    after = state.after("dependencies", usual, told, needs=needs, groups=groups)
    return _required_groups(after)


def _with_rings(state: State, needs: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    found = rings(needs)
    groups = inseparable(state.live)
    if not found:
        return groups
    if state.request.compile_config.cycles == "refuse":
        given = rings({item.id: item.dependencies for item in state.live if item.dependencies})
        if given:
            raise DependencyCycle(given)
    joined = Groups()
    for group in {*groups.values(), *map(tuple, found)}:
        joined.join(group)
    return joined.members([item.id for item in state.live])


def _required_groups(state: State) -> State:
    """Add to what is required whatever cannot be parted from it."""
    required = dict(state.required)
    for item_id in state.required:
        for member in state.groups.get(item_id, ()):
            required.setdefault(member, ReasonCode.REQUIRED_GROUP)
    return replace(state, required=required)
