"""Items that contradict each other: found by what they state, settled by trust and time."""

from hansard_compiler.conflicts.detection import contradictions
from hansard_compiler.conflicts.resolution import Contradiction, Settled, settle
from hansard_compiler.conflicts.revisions import Revision, revision
from hansard_compiler.conflicts.sentences import is_denial

__all__ = [
    "Contradiction", "Revision", "Settled", "contradictions", "is_denial", "revision", "settle",
]  # fmt: skip
