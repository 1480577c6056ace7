"""Replays made inside the program that was traced, over its own store: no server.

The SDK finds `make_replay` by the entry point `hansard.replay`, and knows no more of this floor.
"""

from __future__ import annotations

import time
from pathlib import Path

from pydantic import ValidationError

from hansard_compiler.calls import Json
from hansard_compiler.replay.refusals import NotReplayable, Reason
from hansard_compiler.retention import RetentionMode
from hansard_store.database import DataFolder
from hansard_web.config import Config
from hansard_web.replaying.answers import replay_body
from hansard_web.replaying.asked import AskReplay
from hansard_web.replaying.desk import replaying


def make_replay(data: Path, *, retention: RetentionMode, body: Json) -> Json:
    """Make a replay over the store of a data folder, wait for its end and return it.

    Raises NotReplayable, NotFoundError or AmbiguousIdError, StoreError.
    """
    try:
        asked = AskReplay.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        detail = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise NotReplayable(Reason.MUTATION_INVALID, detail) from None
    config = Config(data=data, retention=retention.value)
    with replaying(DataFolder(data), config) as (replays, readers, _):
        row = replays.start(asked)
        replays.wait(row.replay_id, seconds=asked.timeout_s * asked.n)
        with readers.read() as connection:
            found = replays.row(row.replay_id)
            return replay_body(connection, found, now_ns=time.time_ns())
