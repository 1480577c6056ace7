"""What a program in embedded mode takes from the floors above the SDK's: ingest, and replays.

The SDK finds this module by the entry point `hansard.embedded`. It is imported while the program
starts, and so imports only what shows that the extra `embedded` is installed.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from hansard_collector.pipeline.embedded import open_embedded as open_embedded

if TYPE_CHECKING:
    from hansard_compiler.calls import Json
    from hansard_compiler.retention_modes import RetentionMode
    from hansard_web.replay.json import ReplayBody
    from hansard_web.replay.request import GoOn, ReplayInput

_BY: Final = "the program"
_A = TypeVar("_A", "ReplayInput", "GoOn")


def make_replay(
    data: Path, *, retention: RetentionMode, body: Json, goes_on: str | None = None
) -> ReplayBody:
    """Make a replay over the store of a data folder, wait for its end and return it.

    `goes_on` is a fork that stopped: it goes on live. Raises NotReplayable, NotFoundError or
    AmbiguousIdError, StoreError.
    """
    from hansard_store.database.data_folder import DataFolder
    from hansard_web.app.config import Config
    from hansard_web.replay.json import replay_body
    from hansard_web.replay.request import GoOn, ReplayInput
    from hansard_web.replay.service import replaying

    config = Config(data=data, retention=retention.value)
    with replaying(DataFolder(data), config) as (replays, readers, _):
        if goes_on is None:
            request = _read(ReplayInput, body)
            row, wait_s = replays.start(request), request.timeout_s * request.n
        else:
            more = _read(GoOn, body)
            row, wait_s = replays.go_on(goes_on, more, by=more.by or _BY), more.timeout_s
        replays.wait(row.replay_id, seconds=wait_s)
        with readers.read() as connection:
            found = replays.row(row.replay_id)
            return replay_body(connection, found, now_ns=time.time_ns())


def _read(kind: type[_A], body: Json) -> _A:
    from pydantic import ValidationError

    from hansard_compiler.replay.errors import NotReplayable, ReplayReason

    try:
        return kind.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        detail = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise NotReplayable(ReplayReason.MUTATION_INVALID, detail) from None
