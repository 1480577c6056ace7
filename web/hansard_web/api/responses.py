"""The answer that every route of the API gives."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from hansard_web.api.values import SCHEMA_VERSION, Body, dump


class Answer(Response):
    """A JSON object with its schema version.

    Routes answer it instead of a model: validating what was just read from the store would cost
    more than reading it. `models.py` describes the same bodies, and tests hold them together.
    """

    media_type = "application/json"

    def __init__(
        self, body: Body, *, status_code: int = 200, headers: Mapping[str, str] = {}
    ) -> None:
        content = dump({"schema_version": SCHEMA_VERSION, **body})
        super().__init__(content, status_code=status_code, headers=dict(headers))
