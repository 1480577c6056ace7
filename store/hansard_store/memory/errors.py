"""What memory refuses.

MemoryRefused
├── WriterRefused       the writer lacks what entitles it: an approval, a step   (HTTP 403)
├── NotApproved         no approved action that is being run says this           (HTTP 403)
├── MemoryNotRetained       the retention mode keeps no content                      (HTTP 409)
├── TooLarge            more than a record may hold                              (HTTP 413)
├── NotCurrent          what was to be replaced or ended has changed             (HTTP 409)
└── InvalidMemory           a request that cannot be meant                           (HTTP 400)
"""

from __future__ import annotations

from collections.abc import Sequence

from hansard_store.errors import StoreError


class MemoryRefused(StoreError):
    """Memory that is not written, read or ended as requested."""

    code = "memory_refused"


class WriterRefused(MemoryRefused):
    """Only named writers write, each with what entitles it."""

    code = "writer_refused"

    def __init__(self, writer: str, why: str) -> None:
        super().__init__(f"the writer {writer!r} may not write this: {why}")


class NotApproved(MemoryRefused):
    """Without a token that may decide, only what a person approved is ended, while that runs."""

    code = "approval_mismatch"

    def __init__(self, why: str) -> None:
        super().__init__(f"no approval permits this: {why}")


class MemoryNotRetained(MemoryRefused):
    """Without content there is nothing to remember: better refused than remembered empty."""

    code = "memory_not_retained"

    def __init__(self) -> None:
        super().__init__(
            "this store keeps no content (retention metadata_only), so it has no memory to write; "
            "keep it in the program, or run a store of another mode for it"
        )


class TooLarge(MemoryRefused):
    """A memory is a note; a file belongs into a payload, and its reference into the note."""

    code = "memory_too_large"

    def __init__(self, *, found_bytes: int, most_bytes: int) -> None:
        super().__init__(
            f"a memory holds at most {most_bytes:,} bytes, this has {found_bytes:,}; "
            "keep the whole as a payload and its reference in the memory"
        )
        self.details = {"found_bytes": found_bytes, "most_bytes": most_bytes}


class NotCurrent(MemoryRefused):
    """Somebody was first; `state` is how it stands now."""

    code = "memory_not_current"

    def __init__(self, memory_id: str, *, state: str, expected: str) -> None:
        super().__init__(f"the memory {memory_id} is {state}, not {expected}: read it again")
        self.details = {"memory_id": memory_id, "state": state}


class InvalidMemory(MemoryRefused):
    """Fields that do not fit; each as `place: problem`, without values."""

    code = "bad_request"

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        where, what = problems[0]
        super().__init__(f"{where}: {what}")
        self.problems = [{"at": at, "problem": problem} for at, problem in problems]
