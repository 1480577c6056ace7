"""The root of every error Hansard raises on purpose; each floor adds its own branch.

HansardError
├── ConfigError          a setting that cannot work; the command line prints it and exits 2
├── NotFoundError        no such run, step or payload (HTTP 404)
├── AmbiguousIdError     an id prefix that fits more than one (HTTP 409)
├── compiler:  CompileError …    compile_errors.py
├── store:     StoreError …      hansard_store/errors.py
└── collector: IngestError …     hansard_collector/errors.py
"""

from __future__ import annotations

from collections.abc import Sequence


class HansardError(Exception):
    """Something Hansard refuses or cannot do, in a sentence a person understands."""

    code = "error"


class ConfigError(HansardError):
    """A setting that cannot work, found before anything was started."""

    code = "bad_config"


class NotFoundError(HansardError):
    """Nothing is stored under this id."""

    code = "not_found"

    def __init__(self, kind: str, wanted: str) -> None:
        super().__init__(f"no {kind} {wanted!r}")
        self.kind = kind
        self.wanted = wanted


class AmbiguousIdError(HansardError):
    """A prefix that more than one id begins with."""

    code = "ambiguous_id"

    def __init__(self, kind: str, prefix: str, matches: Sequence[str]) -> None:
        super().__init__(
            f"{prefix!r} begins more than one {kind} ({', '.join(matches)}); give more digits"
        )
        self.kind = kind
        self.prefix = prefix
        self.matches = list(matches)
