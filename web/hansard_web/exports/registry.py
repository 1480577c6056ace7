"""The tables that can be saved as a file.

A noun that has a list declares `TABLE` in its module `table.py` and is named here; the route
`/v1/tables/NAME`, `hansard table NAME` and the macro `export_menu` of the pages take it from there.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from hansard_compiler.errors import NotFoundError
from hansard_web.exports.table import Table

# Name -> the module, below `hansard_web`, with `TABLE` or with another name after a colon.
_TABLES: Final = {
    "approvals": "approvals.table",
    "conversations": "conversations.table",
    "drops": "health.table:DROPS",
    "errors": "error_groups.table",
    "events": "audit.table",
    "latency": "overview.table:LATENCY",
    "memory": "memory.table",
    "notifications": "notifications.table",
    "overview": "overview.table",
    "receipts": "receipts.table",
    "refusals": "health.table:REFUSALS",
    "reports": "reports.table",
    "runs": "runs.table",
    "senders": "health.table:SENDERS",
    "tasks": "tasks.table",
    "usage": "usage.table",
    "users": "users.table",
}
NAMES: Final = tuple(_TABLES)


def find_table(name: str) -> Table:
    """Return a table; raises NotFoundError."""
    if name not in _TABLES:
        raise NotFoundError("table", name)
    module, _, attribute = _TABLES[name].partition(":")
    found: Table = getattr(import_module(f"hansard_web.{module}"), attribute or "TABLE")
    return found
