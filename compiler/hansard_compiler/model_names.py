"""Names of models without the date of their version: `gpt-4o-mini-2024-07-18` is `gpt-4o-mini`.

Providers serve a model under a name and under dated names of its snapshots: OpenAI
`-2024-07-18`, Anthropic `-20250929` and on other clouds `@20250929` and `-20250929-v1:0`, Google
`-001` (which is a version, and stays), several `-latest`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_DATE: Final = r"20\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_DIGITS: Final = r"20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_DATED: Final = re.compile(rf"(?:[-@](?:{_DATE}|{_DIGITS})(?:-v\d+(?::\d+)?)?|[-@:]latest)\Z")


@lru_cache(maxsize=4096)
def undated(model: str) -> str:
    """Return the name of a model without a date, or `latest`, at its end.

    A name that is nothing but a date stays; what else tells models apart is never removed.
    """
    return _DATED.sub("", model) or model
