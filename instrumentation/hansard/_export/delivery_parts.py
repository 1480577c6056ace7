"""What a delivery carries beside spans and log records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

    from hansard._export.dropped import Reason
    from hansard._export.otlp.batches import Courier
    from hansard._export.otlp.results import Answer


class Cargo(Protocol):
    """What keeps itself on disk and is sent before spans: payloads."""

    on_loss: Callable[[Reason, int], None]

    @property
    def waiting(self) -> int: ...

    def due_s(self, delay_s: float) -> float | None:
        """Return when to send some, on the monotonic clock; None when nothing waits."""

    def look(self) -> None:
        """Take in what dead processes left."""

    def send_next(self, courier: Courier, resource: Resource) -> Answer: ...

    def after_fork(self) -> None: ...

    def close(self) -> None: ...
