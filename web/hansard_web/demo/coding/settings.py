"""How the golden path is played."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """With which model, how slowly, and who decides."""

    folder: Path  # for the working copies
    provider: str = "scripted"
    model: str = "scripted-1"
    pace_s: float = 0.0
    asks: bool = False  # leave the decisions to whoever watches
