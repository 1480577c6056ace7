"""Items that contradict each other: found by what they state, settled by trust and time."""

from hansard_compiler.conflicts.detection import contradictions
from hansard_compiler.conflicts.settling import Contradiction, Settled, settle

__all__ = ["Contradiction", "Settled", "contradictions", "settle"]
