"""What a program with embedded mode takes from the floors above the SDK's.

The SDK finds `parts` by the entry point `hansard.embedded`. Each part is imported when it is asked
for: the program asks for the first while it starts, and for the others perhaps never.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hansard._backend.protocol import EmbeddedParts, MakeReplay, OpenIngest


class _Parts:
    @property
    def open_ingest(self) -> OpenIngest:
        from hansard_collector.pipeline.embedded import open_embedded

        return open_embedded

    @property
    def make_replay(self) -> MakeReplay:
        from hansard_web.replay.embedded import make_replay

        return make_replay


parts: Final[EmbeddedParts] = _Parts()
