"""Every error that the JSON API answers with, from the classes that are raised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hansard_collector.errors import IngestError
from hansard_compiler.errors import HansardError
from hansard_web.app.problems import problem_status

# Which routes can answer with the errors of a module; those of no line can come from any.
_OF_MODULES: Final = {
    "hansard_compiler.compile.errors": ("sidecar", "replay"),
    "hansard_compiler.policy.errors": ("policy", "sidecar"),
    "hansard_compiler.providers": ("sidecar", "replay"),
    "hansard_compiler.replay": ("replay",),
    "hansard_compiler.transcripts.errors": ("transcripts",),
    "hansard_store.annotations.errors": ("annotations",),
    "hansard_store.approvals.errors": ("approvals",),
    "hansard_store.memory.errors": ("memory",),
    "hansard_store.tasks.errors": ("tasks",),
    "hansard_web.diff": ("diff",),
    "hansard_web.sidecar": ("sidecar", "policy", "replay"),
    "hansard_web.errors": ("payloads",),
}
ANY: Final = ""


@dataclass(frozen=True, slots=True, order=True)
class Listed:
    """An error of the API as its reference lists it."""

    status: int
    code: str
    words: str


COMMON: Final = (
    Listed(400, "bad_request", "What cannot be meant; `details.problems` says where."),
    Listed(401, "unauthenticated", "The server has tokens, and none, or an unknown one, was sent."),
    Listed(403, "scope_missing", "The token has not the scope that the route needs."),
    Listed(403, "host_not_allowed", "The name in Host is not one of this server."),
    Listed(403, "origin_not_allowed", "A page of another site asks."),
    Listed(403, "cross_site", "A page of another site makes the request."),
    Listed(403, "forbidden", "The sender may not do this."),
    Listed(405, "method_not_allowed", "The route has no such method; `Allow` lists its methods."),
    Listed(404, "not_found", "No such route, or nothing is stored under this id."),
    Listed(413, "too_large", "The body is over the limit, or would take too much memory parsed."),
    Listed(500, "internal", "Hansard failed in a way it should not; its log says how."),
    Listed(503, "busy", "The store is locked, full or read-only, or large bodies take the memory."),
)  # fmt: skip


def errors_of(tag: str) -> list[Listed]:
    """Return what routes of a tag answer beside what all do (`ANY`), by status and code."""
    found = {
        (kind.code, status): Listed(status, kind.code, (kind.__doc__ or "").split("\n")[0])
        for kind in sorted(_kinds(HansardError), key=_place, reverse=True)
        if (status := problem_status(kind)) is not None
        and not issubclass(kind, IngestError)
        and tag in _tags(kind)
    }
    known = {(one.code, one.status) for one in COMMON}
    return sorted(one for key, one in found.items() if key not in known)


def _tags(kind: type[HansardError]) -> tuple[str, ...]:
    module = kind.__module__
    named = (tags for prefix, tags in _OF_MODULES.items() if module.startswith(prefix))
    return next(named, (ANY,))


def _place(kind: type[HansardError]) -> tuple[str, str]:
    """Of two classes with one code the first by this speaks, whichever was imported first."""
    return kind.__module__, kind.__qualname__


def _kinds(kind: type[HansardError]) -> Iterator[type[HansardError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _kinds(one)
