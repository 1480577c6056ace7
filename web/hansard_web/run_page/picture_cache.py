"""What is kept of the runs looked at last: trees, their geometry, how they were laid out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Generic, TypeVar

import apsw

from hansard_store.steps.queries import RunTree, get_tree
from hansard_store.steps.tree import TreeCache
from hansard_web.run_page.arrangement import Arrangement
from hansard_web.run_page.picture import Picture

_KEPT_RUNS = 16
_KEPT_EACH = 8  # arrangements and searches of one run

_Value = TypeVar("_Value")


class Recent(Generic[_Value]):
    """The values made last, by key. Any request thread may ask; two may make one value at once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, _Value] = OrderedDict()
        self._lock = Lock()  # guards the order of `_values`, which every look changes

    def get(self, key: Hashable, make: Callable[[], _Value]) -> _Value:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        # Made outside the lock: a slow run must not stop the pages of the others.
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run at one version, with what was worked out about it."""

    tree: RunTree
    picture: Picture
    arrangements: Recent[Arrangement] = field(default_factory=lambda: Recent(_KEPT_EACH))
    matches: Recent[frozenset[int]] = field(default_factory=lambda: Recent(_KEPT_EACH))
    readings: Recent[Any] = field(default_factory=lambda: Recent(_KEPT_EACH))  # talk and log lines


class Pictures:
    """Trees and pictures of one store, shared by all requests."""

    def __init__(self) -> None:
        self._trees = TreeCache()
        self._shown: Recent[ShownRun] = Recent(_KEPT_RUNS)

    def tree(self, connection: apsw.Connection, run_id: str) -> RunTree:
        """Return the tree alone; raises NotFoundError or AmbiguousIdError."""
        return get_tree(connection, run_id, cache=self._trees)

    def get(self, connection: apsw.Connection, run_id: str) -> ShownRun:
        """Return a run as it is now; raises NotFoundError or AmbiguousIdError."""
        tree = self.tree(connection, run_id)
        key = (tree.run_id, tree.version)
        return self._shown.get(key, lambda: ShownRun(tree, Picture(tree.tree)))
