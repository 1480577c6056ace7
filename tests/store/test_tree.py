"""The tree of a run: every span exactly once, whatever parents it names."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.tree import Node, Tree, TreeCache, TreeMark, build_tree


def node(
    name: str,
    parent: str | None = None,
    start: int = 0,
    *,
    side: int = 0,
    resource: int = 1,
    flags: int = 0,
    number: int = 0,
) -> Node:
    return Node(
        id=number or int.from_bytes(name.encode(), "big") * 2 + side,
        span_id=name.encode(),
        side=side,
        parent_span_id=None if parent is None else parent.encode(),
        resource=resource,
        start_ns=start,
        end_ns=start + 1,
        sort_ns=start,
        status=0,
        role="other",
        flags=flags,
    )


def outline(tree: Tree) -> list[str]:
    return [
        "  " * depth + node.span_id.decode() + ("*" if node.side else "")
        for node, depth in zip(tree.nodes, tree.depths, strict=True)
    ]


@st.composite
def forests(draw: st.DrawFn) -> list[Node]:
    """Any spans with any parents: missing ones, themselves, in loops, shared ids, folded ones."""
    names = st.sampled_from("abcdefghijklmnop")
    drawn = draw(
        st.lists(
            st.tuples(
                names,
                st.one_of(st.none(), names, st.just("missing")),
                st.integers(0, 5),
                st.integers(0, 1),
                st.integers(1, 2),
                st.sampled_from([0, 0, 0, int(SpanFlag.FOLDED)]),
            ),
            max_size=24,
            unique_by=lambda one: (one[0], one[3]),
        )
    )
    return [
        node(name, parent, start, side=side, resource=resource, flags=flags, number=number + 1)
        for number, (name, parent, start, side, resource, flags) in enumerate(drawn)
    ]


@given(forests())
def test_every_span_that_is_not_folded_is_shown_exactly_once(nodes: list[Node]) -> None:
    tree = build_tree(nodes)

    shown = sorted(one.id for one in tree.nodes)
    assert shown == sorted(one.id for one in nodes if not one.flags & SpanFlag.FOLDED)


def ancestors(tree: Tree, row: int) -> list[int]:
    """Return the rows above a row, nearest first."""
    found = []
    while (row := tree.parents[row]) >= 0:
        found.append(row)
    return found


@given(forests())
def test_depths_parents_and_sizes_agree(nodes: list[Node]) -> None:
    tree = build_tree(nodes)

    for row in range(len(tree)):
        parent = tree.parents[row]
        assert parent < row
        assert tree.depths[row] == (0 if parent == -1 else tree.depths[parent] + 1)
        below = [other for other in range(len(tree)) if row in ancestors(tree, other)]
        assert below == list(range(row + 1, row + tree.sizes[row]))


@given(forests())
def test_brothers_stand_in_order_of_start(nodes: list[Node]) -> None:
    tree = build_tree(nodes)

    for parent in range(-1, len(tree)):
        rows = [row for row in range(len(tree)) if tree.parents[row] == parent]
        starts = [(tree.nodes[row].sort_ns, tree.nodes[row].id) for row in rows]
        assert starts == sorted(starts)


@given(forests(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(nodes: list[Node], random: object) -> None:
    shuffled = list(nodes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis' Random

    assert build_tree(shuffled) == build_tree(nodes)


@given(forests(), st.integers(-2, 25), st.integers(0, 9))
def test_windows_are_slices_of_the_rows(nodes: list[Node], first: int, count: int) -> None:
    tree = build_tree(nodes)

    window = tree.window(first=first, count=count)

    start = min(max(first, 0), len(tree))
    assert window.start == start
    assert list(window) == list(range(len(tree)))[start : start + count]


def test_children_follow_their_parent_in_order_of_start() -> None:
    nodes = [node("c", "a", 3), node("b", "a", 5), node("d", "c", 4), node("a", None, 1)]

    assert outline(build_tree(nodes)) == ["a", "  c", "    d", "  b"]


def test_a_span_whose_parent_is_absent_stands_at_the_top_marked() -> None:
    tree = build_tree([node("b", "gone", 2), node("c", "b", 3)])

    assert outline(tree) == ["b", "  c"]
    assert tree.marks == (TreeMark.ORPHAN, 0)


def test_a_loop_is_cut_at_its_earliest_span() -> None:
    tree = build_tree([node("a", "c", 7), node("b", "a", 5), node("c", "b", 9), node("d", "a", 8)])

    assert outline(tree) == ["b", "  c", "    a", "      d"]
    assert tree.marks == (TreeMark.LOOP, 0, 0, 0)


def test_a_span_that_is_its_own_parent_stands_at_the_top_marked() -> None:
    tree = build_tree([node("a", "a", 1)])

    assert outline(tree) == ["a"]
    assert tree.marks == (TreeMark.LOOP,)


def test_children_of_a_shared_id_go_to_the_half_of_their_own_process() -> None:
    client = node("x", None, 1, resource=1)
    server = node("x", None, 2, side=1, resource=2)
    nodes = [server, client, node("c", "x", 3, resource=1), node("s", "x", 3, resource=2)]

    assert outline(build_tree(nodes)) == ["x", "  c", "x*", "  s"]


def test_children_of_a_shared_id_from_elsewhere_go_to_the_client() -> None:
    nodes = [
        node("x", None, 2, side=1, resource=2),
        node("x", None, 3, resource=1),
        node("c", "x", 4, resource=3),
    ]

    assert outline(build_tree(nodes)) == ["x*", "x", "  c"]


def test_children_of_a_folded_span_move_up_to_what_it_stands_for() -> None:
    folded = int(SpanFlag.FOLDED)
    nodes = [node("real", None, 1), node("p", "real", 1, flags=folded), node("c", "p", 2)]

    assert outline(build_tree(nodes)) == ["real", "  c"]


def test_a_chain_of_fifty_thousand_spans_is_no_recursion() -> None:
    size = 50_000
    nodes = [
        Node(i + 1, b"%d" % i, 0, b"%d" % (i - 1) if i else None, 1, i, i + 1, i, 0, "other", 0)
        for i in range(size)
    ]

    tree = build_tree(nodes)

    assert tree.depths[-1] == size - 1
    assert tree.sizes[0] == size


def small_tree(size: int) -> Tree:
    return build_tree([node(chr(97 + number), None, number) for number in range(size)])


def cached(cache: TreeCache, keys: Sequence[tuple[int, int]]) -> list[bool]:
    return [cache.find(*key) is not None for key in keys]


def test_the_cache_keeps_one_version_of_a_run() -> None:
    cache = TreeCache()
    cache.keep(1, 1, small_tree(2))
    cache.keep(1, 2, small_tree(3))

    assert cached(cache, [(1, 1), (1, 2)]) == [False, True]


def test_the_cache_drops_the_tree_not_looked_at_for_longest() -> None:
    cache = TreeCache(max_rows=10)
    cache.keep(1, 1, small_tree(4))
    cache.keep(2, 1, small_tree(4))
    cache.find(1, 1)
    cache.keep(3, 1, small_tree(4))

    assert cached(cache, [(1, 1), (2, 1), (3, 1)]) == [True, False, True]
