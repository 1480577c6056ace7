"""Who waits for a commit is woken by those that concern it, and by no other."""

from __future__ import annotations

import anyio

from hansard_store.approvals.records import Proposal
from hansard_store.approvals.rows import version_of
from hansard_store.approvals.service import ApprovalService
from hansard_web.live import StoreWatch
from tests.web.makers import RunMaker


def test_a_wait_for_one_approval_is_not_ended_by_other_commits(runs: RunMaker) -> None:
    store, watch = ApprovalService(runs.folder), StoreWatch(runs.folder)
    mine, other = (
        store.propose(Proposal(tool="pay", arguments={"n": n})).approval.approval_id
        for n in range(2)
    )

    async def run() -> list[bool]:
        async with watch.watching(lambda found: version_of(found, mine)) as watching:
            woken = [await watching.changed(within_s=5)]  # what it finds first is news
            assert watch.streams == 0
            await anyio.to_thread.run_sync(lambda: store.reject(other, by="ann"))
            woken.append(await watching.changed(within_s=0.5))
            await anyio.to_thread.run_sync(lambda: store.approve(mine, by="ann"))
            woken.append(await watching.changed(within_s=5))
        return woken

    async def stream() -> bool:
        async with watch.watching() as watching:
            assert watch.streams == 1
            await anyio.to_thread.run_sync(lambda: store.failed("x", "y"))
            return await watching.changed(within_s=5)

    try:
        assert anyio.run(run) == [True, False, True]
        assert anyio.run(stream)
        assert watch.streams == 0
    finally:
        watch.close()
        store.close()
