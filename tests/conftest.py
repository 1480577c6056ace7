"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# Time is no part of a property: tests share their machine with others.
settings.register_profile("hansard", deadline=None)
settings.load_profile("hansard")
