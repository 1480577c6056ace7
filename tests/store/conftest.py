"""Fixtures of the store's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hansard_store.approvals.service import ApprovalService
from tests.store.accounts import Clock, account
from tests.store.maker import StoreMaker
from tests.store.plans import QueryPlans


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreMaker]:
    """A fresh store on disk."""
    maker = StoreMaker(tmp_path / "data")
    yield maker
    maker.close()


@pytest.fixture
def plans() -> QueryPlans:
    """Watches how SQLite runs what is asked in a block."""
    return QueryPlans()


@pytest.fixture
def clock() -> Clock:
    """What time it is for a desk; it stands still until it is turned."""
    return Clock()


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Iterator[ApprovalService]:
    """Approvals and the audit log of a fresh store."""
    with account(tmp_path, clock) as opened:
        yield opened
