"""Items that contradict each other: found by what they state, settled by trust and time."""

from hansard_compiler.conflicts.detection import contradictions
from hansard_compiler.conflicts.revisions import Revision, revision
from hansard_compiler.conflicts.sentences import is_denial
from hansard_compiler.conflicts.settling import Contradiction, Settled, settle

__all__ = [
    "Contradiction", "Revision", "Settled", "contradictions", "is_denial", "revision", "settle",
]  # fmt: skip
