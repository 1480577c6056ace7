"""How much of what agents send is stored."""

from __future__ import annotations

from enum import StrEnum


class RetentionMode(StrEnum):
    """Set once for the collector; the SDK may only be stricter. `docs/retention.md` explains."""

    METADATA_ONLY = "metadata_only"  # no content at all: names, numbers, times
    REDACTED_PAYLOADS = "redacted_payloads"  # everything but secrets; the default
    FULL_PAYLOADS = "full_payloads"  # everything
