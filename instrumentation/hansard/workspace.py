"""The workspace of this machine: the roots of an MCP client, with symlinks followed."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Mapping
from typing import Any

from hansard_compiler.mcp_context import McpWorkspace


def workspace(roots: Iterable[Mapping[str, Any]], *, schemes: Iterable[str] = ()) -> McpWorkspace:
    """Return the boundary that `roots/list` draws; `schemes` are permitted beside file:.

    Raises InvalidInput for a root that is no folder of this machine.
    """
    return McpWorkspace.of(roots, resolve=os.path.realpath, schemes=schemes)
