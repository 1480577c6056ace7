"""Pass 4: find what belongs together and what needs what, among the candidates left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hansard_compiler.compile.errors import DependencyCycle, OrphanToolResult
from hansard_compiler.compile.items import CONVERSATION, CandidateItem
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.state import CompileState, Ruling


def run(state: CompileState) -> CompileState:
    """Group calls, results and reasoning; resolve dependencies, at any depth.

    Raises OrphanToolResult, and DependencyCycle unless `cycles` is `together`: then a ring is one
    group, as is one that only came about because copies were dropped. A dependency that is no
    candidate is named in the note of what needs it.
    """
    refuse_orphans(state.items)
    present = {item.id for item in state.live}
    rulings: dict[str, Ruling] = {}
    needs: dict[str, tuple[str, ...]] = {}
    for item in state.live:
        if item.dependencies:
            needed = [state.aliases.get(one, one) for one in item.dependencies]
            needs[item.id] = tuple(dict.fromkeys(one for one in needed if one in present))
            if item.id in needs[item.id] and item.id not in item.dependencies:
                # What it needs is a copy of it.
                needs[item.id] = tuple(one for one in needs[item.id] if one != item.id)
            absent = [one for one in needed if one not in present]
            if absent:
                note = "depends on what is no candidate: " + ", ".join(absent[:5])
                rulings[item.id] = Ruling("include", ReasonCode.CONSIDERED, note)
    groups = _with_rings(state, needs)
    needs = {one: needed for one, needed in needs.items() if needed}
    usual = Ruling("include", ReasonCode.CONSIDERED)
    after = state.after("dependencies", usual, rulings, needs=needs, groups=groups)
    return _required_groups(after)


def _with_rings(
    state: CompileState, needs: dict[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    found = rings(needs)
    groups = inseparable(state.live)
    if not found:
        return groups
    if state.request.compile_config.cycles == "refuse":
        cycles = rings({item.id: item.dependencies for item in state.live if item.dependencies})
        if cycles:
            raise DependencyCycle(cycles)
    joined = Groups()
    for group in {*groups.values(), *map(tuple, found)}:
        joined.join(group)
    return joined.members([item.id for item in state.live])


def _required_groups(state: CompileState) -> CompileState:
    """Add to what is required all that cannot be parted from it."""
    required = dict(state.required)
    for item_id in state.required:
        for member in state.groups.get(item_id, ()):
            required.setdefault(member, ReasonCode.REQUIRED_GROUP)
    return replace(state, required=required)


# What belongs together: calls and their results, reasoning and what it led to, dependencies.
#
# A *group* goes in whole or stays out whole. A dependency points one way: what goes in takes along
# what it depends on, as far as that is a candidate.


class Groups:
    """Sets of items that grow together (union-find)."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def join(self, item_ids: Iterable[str]) -> None:
        first, *others = item_ids
        for other in others:
            a, b = self._root(first), self._root(other)
            if a != b:
                self._parent[b] = a

    def members(self, order: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return the group of every item that shares one, members in the order of the input."""
        of_root: dict[str, list[str]] = {}
        for item_id in order:
            if item_id in self._parent:
                of_root.setdefault(self._root(item_id), []).append(item_id)
        groups = [tuple(group) for group in of_root.values() if len(group) > 1]
        return {item_id: group for group in groups for item_id in group}

    def _root(self, item_id: str) -> str:
        parent = self._parent.setdefault(item_id, item_id)
        while parent != self._parent[parent]:
            self._parent[parent] = self._parent[self._parent[parent]]
            parent = self._parent[parent]
        return parent


def inseparable(items: Sequence[CandidateItem]) -> dict[str, tuple[str, ...]]:
    """Return the groups of calls, results and reasoning; single items are left out."""
    groups = Groups()
    of_link: dict[str, list[str]] = {}
    spoken = [item for item in items if item.kind in CONVERSATION]
    for item in spoken:
        for call_id in (*item.calls, *item.answers):
            of_link.setdefault("call " + call_id, []).append(item.id)
        response_id = item.metadata.get("response_id")
        if response_id:
            of_link.setdefault(f"response {response_id}", []).append(item.id)
    for linked in of_link.values():
        groups.join(linked)
    for pair in _reasoning_pairs(spoken):
        groups.join(pair)
    return groups.members([item.id for item in spoken])


def _reasoning_pairs(spoken: Sequence[CandidateItem]) -> Iterator[tuple[str, str]]:
    """Pair reasoning that is an item of its own with what the assistant said or did next."""
    if not any(item.is_reasoning for item in spoken):
        return
    waiting: CandidateItem | None = None
    for item in sorted(spoken, key=lambda item: (item.created_us, item.position)):
        if waiting is not None and item.kind == "assistant_msg":
            yield waiting.id, item.id
        if item.kind == "assistant_msg":
            waiting = item if item.is_reasoning else None
        elif item.kind == "user_msg":
            waiting = None


def refuse_orphans(items: Sequence[CandidateItem]) -> None:
    """Raise OrphanToolResult when a result answers a call that no candidate makes."""
    spoken = [item for item in items if item.kind in CONVERSATION]
    made = {call_id for item in spoken for call_id in item.calls}
    orphans = [
        (item.id, call_id) for item in spoken for call_id in item.answers if call_id not in made
    ]
    if orphans:
        raise OrphanToolResult(orphans, calls=len(made))


def closure(
    start: Iterable[str],
    *,
    groups: Mapping[str, tuple[str, ...]],
    needs: Mapping[str, tuple[str, ...]],
    without: Callable[[str], bool],
) -> Iterator[str]:
    """Return all that must go in with `start`: groups whole, dependencies at any depth.

    What `without` says yes to is left out, and so is whatever only it needs.
    """
    found: set[str] = set()
    waiting = list(start)
    while waiting:
        item_id = waiting.pop()
        if item_id in found or without(item_id):
            continue
        found.add(item_id)
        yield item_id
        waiting.extend(groups.get(item_id, ()))
        waiting.extend(needs.get(item_id, ()))


def rings(needs: Mapping[str, tuple[str, ...]]) -> list[list[str]]:
    """Return the strongly connected sets of dependencies, and items that need themselves.

    Tarjan (1972), without recursion: chains may be thousands long.
    """
    search = _Tarjan(needs)
    for item_id in needs:
        search.visit(item_id)
    return search.found


class _Tarjan:
    def __init__(self, needs: Mapping[str, tuple[str, ...]]) -> None:
        self._needs = needs
        self._number: dict[str, int] = {}
        self._low: dict[str, int] = {}
        self._stack: dict[str, None] = {}
        self.found: list[list[str]] = []

    def visit(self, start: str) -> None:
        if start in self._number:
            return
        path = [(start, self._open(start))]
        while path:
            item_id, following = path[-1]
            for other in following:
                if other not in self._number:
                    path.append((other, self._open(other)))
                    break
                if other in self._stack:
                    self._low[item_id] = min(self._low[item_id], self._number[other])
            else:
                path.pop()
                if path:
                    above = path[-1][0]
                    self._low[above] = min(self._low[above], self._low[item_id])
                self._close(item_id)

    def _open(self, item_id: str) -> Iterator[str]:
        self._number[item_id] = self._low[item_id] = len(self._number)
        self._stack[item_id] = None
        return iter(self._needs.get(item_id, ()))

    def _close(self, item_id: str) -> None:
        if self._low[item_id] != self._number[item_id]:
            return
        ring: list[str] = []
        while not ring or ring[-1] != item_id:
            ring.append(self._stack.popitem()[0])
        if len(ring) > 1 or item_id in self._needs.get(item_id, ()):
            self.found.append(ring[::-1])
