"""How people speak of what tools do, domain by domain: versioned data sets of phrases.

A set names its topics, each with the tools and shell commands that do it, what their results say,
and phrases by language. `docs/evaluation.md` describes the format; a user's own set adds to these.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

SETS: Final = (
    "coding_claims-1",
    "operations_claims-1",
    "support_claims-1",
    "research_claims-1",
    "data_work_claims-1",
)
_FOLDER: Final = Path(__file__).parent


def load_sets(names: Sequence[str] = SETS) -> list[dict[str, Any]]:
    """Return the data sets of these names, in their order, as they are in their files."""
    return [json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8")) for name in names]
