"""Which model each call of a run asked for, and which one served it."""

from __future__ import annotations

from typing import NamedTuple

import apsw

_MODELS = "SELECT span, request_model, response_model FROM call WHERE run = :run"


class CallModels(NamedTuple):
    """None is not told: a library may tell one of the two, or neither."""

    requested: str | None
    served: str | None


def call_models(connection: apsw.Connection, run: int) -> dict[int, CallModels]:
    """Return the models of a run's calls by span.id."""
    return {span: CallModels(*rest) for span, *rest in connection.execute(_MODELS, {"run": run})}
