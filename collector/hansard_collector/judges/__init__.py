"""The classifier and the embedder that the heartbeat's phases share."""

from __future__ import annotations

from dataclasses import dataclass

from hansard_compiler.classifier import Classifier
from hansard_compiler.embedder import Embedder

__all__ = ["Judges"]


@dataclass(frozen=True, slots=True)
class Judges:
    """What judges texts; None is a missing one: what needs it is skipped, and says so."""

    classifier: Classifier | None = None
    embedder: Embedder | None = None
