"""Opening approvals and the audit log from a command: on the data folder, without a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hansard_compiler.calls import Json
from hansard_compiler.errors import ConfigError
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention import RetentionMode
from hansard_store.approvals.service import Accountability
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.policy.check_rows import CheckKeeper
from hansard_store.principals.model import CLAIMED
from hansard_web.app.readers import Readers
from hansard_web.app.strict_json import parse_json
from hansard_web.cli.base import read_config
from hansard_web.cli.store import find_store, open_store
from hansard_web.policy.proposals import policy_of
from hansard_web.policy.service import PolicyBook
from hansard_web.sidecar.errors import BadBody

SETTINGS = ("data", "policy", "retention", "heads_copy")


@contextmanager
def accounting(
    told: dict[str, Any], *, source: str = "cli", creates: bool = False
) -> Iterator[Accountability]:
    """Open accountability for the block, judged by the rules that a server here would use.

    `told` holds the settings of the command, and loses them.
    """
    given = {name: told.pop(name) for name in SETTINGS if name in told}
    config = read_config(**given)
    if creates and not DataFolder(config.data).has_store:
        open_for_ingest(DataFolder(config.data)).close()
    folder = find_store(given.get("data"))
    open_store(folder).close()  # of this version, or refused
    readers = Readers(folder)
    key, mode = folder.key(), RetentionMode(config.retention)
    book = PolicyBook(folder, readers.read, config.policy)
    policy = policy_of(book, CheckKeeper(mode, Redactor(key), key), folder)
    desk = Accountability(
        folder,
        retention=mode,
        policy=policy,
        source=source,
        heads_copy=config.heads_copy,
        decide="anyone" if config.decide == "anyone" else "claimed",
    )
    try:
        yield desk.acting(CLAIMED)
    finally:
        desk.close()
        readers.close()


def read_arguments(text: str) -> Json:
    """Return the arguments of a call; what could be read in two ways is refused."""
    try:
        value = parse_json(text.encode("utf-8", "surrogateescape"))
    except BadBody as error:
        told = str(error).replace("the body is", "they are", 1)
        raise ConfigError(f"the arguments cannot be read: {told}") from None
    if not isinstance(value, dict):
        raise ConfigError("the arguments are a JSON object: names and values")
    return value
