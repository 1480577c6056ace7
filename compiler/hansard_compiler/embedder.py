"""One embedder interface: texts to vectors whose products say how near they are in meaning.

The offline default is deterministic and needs nothing; the extra `embeddings` brings word vectors;
a provider's model may stand in their place. The caller stores the embedder's name with each vector:
vectors of two embedders are never compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Vector = Sequence[float]  # of length 1, so that a product of two is their cosine; all 0: no words


class Embedder(Protocol):
    """Returns a vector for each text. Raises HansardError where it cannot."""

    @property
    def name(self) -> str:
        """Its name and version, stored with each vector."""

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""

    def __call__(self, texts: Sequence[str]) -> Sequence[Vector]: ...
