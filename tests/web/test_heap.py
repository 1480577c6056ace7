"""What the process frees goes back to the system, at the right moments."""

from __future__ import annotations

import gc

import pytest

from hansard_web.app.server import HeapKeeper

MIB = 1 << 20


class Figures:
    """What the system says of a process, as a test sets it."""

    def __init__(self) -> None:
        self.bytes = 100 * MIB
        self.used_s = 0.0

    def keeper(self) -> HeapKeeper:
        return HeapKeeper(resident=lambda: self.bytes, processor_s=lambda: self.used_s)


class Cycle:
    """Refers to itself, so that only the collector of cycles frees it."""

    def __init__(self) -> None:
        self.itself = self


def cycles() -> int:
    return sum(isinstance(one, Cycle) for one in gc.get_objects())


@pytest.fixture
def figures() -> Figures:
    return Figures()


def test_an_idle_process_that_has_grown_is_collected_and_trimmed(figures: Figures) -> None:
    keeper = figures.keeper()
    figures.bytes += 40 * MIB
    gc.disable()
    Cycle()

    tried = keeper.look()

    gc.enable()
    assert tried
    assert cycles() == 0


def test_what_cannot_be_given_back_is_not_tried_again(figures: Figures) -> None:
    keeper = figures.keeper()
    figures.bytes += 40 * MIB

    assert [keeper.look() for _ in range(3)] == [True, False, False]


def test_a_busy_process_is_left_alone_unless_it_grows_fast(figures: Figures) -> None:
    keeper = figures.keeper()

    figures.bytes, figures.used_s = 150 * MIB, 1.0
    slowly = keeper.look()
    figures.bytes, figures.used_s = 400 * MIB, 2.0
    fast = keeper.look()

    assert (slowly, fast) == (False, True)


def test_a_process_that_shrank_by_itself_is_judged_from_there(figures: Figures) -> None:
    keeper = figures.keeper()
    figures.bytes = 60 * MIB
    keeper.look()
    figures.bytes = 95 * MIB

    assert keeper.look()
