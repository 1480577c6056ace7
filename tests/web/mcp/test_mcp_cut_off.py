"""An approved action of an MCP client that is cut off half-way: nobody knows how it ended."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from hansard_compiler.calls import Json
from hansard_store.approvals.service import ApprovalService
from hansard_web.mcp.api_client import ApiClient, ApiRefused, app_client
from hansard_web.mcp.tools import ToolAction, confirmed
from tests.web.sidecar.conftest import House

STATES = {"returns": "done", "is refused": "failed", "breaks": "unknown", "is cancelled": "unknown"}


@pytest.mark.parametrize("ending", STATES)
def test_the_end_of_an_action_is_recorded_as_it_was(tmp_path: Path, ending: str) -> None:
    house = House(tmp_path / "data")
    app = house.serve().client.app
    scopes: list[anyio.CancelScope] = []
    seen: list[str] = []

    async def work(approval: Json) -> Json:
        await anyio.lowlevel.checkpoint()
        with ApprovalService(house.folder) as store:
            seen.append(store.approval(approval["approval_id"]).execution.state)
        if ending == "is refused":
            raise ApiRefused("no_room", "there is no room")
        if ending == "breaks":
            raise RuntimeError("half-way")
        if ending == "is cancelled":
            scopes[0].cancel()
            await anyio.sleep_forever()
        return {"replay_id": "r1"}

    async def main() -> str:
        api = ApiClient(app_client(app), secret=b"k" * 32)
        action = ToolAction("replay", {"step_id": "s"}, "Replay s", work, "replay_id")
        asked = await confirmed(api, action, None)
        with ApprovalService(house.folder) as store:
            store.approve(asked["approval_id"], by="kim")
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            try:
                await confirmed(api, action, asked["confirmation"])
            except (ApiRefused, RuntimeError):
                assert ending in ("is refused", "breaks")
        assert scope.cancelled_caught == (ending == "is cancelled")
        with pytest.raises(ApiRefused):
            await confirmed(api, action, asked["confirmation"])
        return str(asked["approval_id"])

    identity = anyio.run(main)

    with ApprovalService(house.folder) as store:
        assert store.approval(identity).execution.state == STATES[ending]
    assert seen == ["claimed"]
    house.stop()
