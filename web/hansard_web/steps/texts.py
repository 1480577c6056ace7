"""What a step was sent and said, each piece whole, as plain text: copies, inputs, messages."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter
from starlette.responses import PlainTextResponse, Response

from hansard_collector.derivation.rows import plain_text
from hansard_collector.derivation.stored_span import StepReading, read_step
from hansard_collector.derived_context.context import said
from hansard_compiler.errors import NotFoundError
from hansard_store.content.messages import find_text
from hansard_store.steps.queries import StepSkeleton, get_step, list_redactions
from hansard_web.app.site import Site, SiteDep
from hansard_web.steps.copy_as import FORMS, copy_as
from hansard_web.steps.page import COPY_LABELS
from hansard_web.steps.values import io_value
from hansard_web.ui.format import plural

router = APIRouter()


@router.get("/steps/{step_id}/copy/{form}")
def copy(site: SiteDep, step_id: str, form: str) -> Response:
    found, reading = _read(site, step_id)
    call = reading.normal.call
    if call is None or form not in COPY_LABELS:
        raise NotFoundError("copy", f"{form} of {found.step_id}")
    with site.readers.read() as connection:
        removed = sum(one.count for one in list_redactions(connection, found.id))
    notes = [f"{plural(removed, 'value')} was redacted before storing"] if removed else []
    text = copy_as(call, next(one for one in FORMS if one == form), notes=notes)
    return _plain_text(text)


@router.get("/steps/{step_id}/io/{part}")
def io_part(site: SiteDep, step_id: str, part: str) -> Response:
    found, reading = _read(site, step_id)
    value = io_value(reading, part)
    if value is None:
        raise NotFoundError("part", f"{part} of {found.step_id}")
    return _plain_text(value)


@router.get("/texts/{digest}")
def text(site: SiteDep, digest: str) -> Response:
    """One message whole, as text: what "show all" leads to."""
    with site.readers.read() as connection:
        message = find_text(connection, digest)
    if message is None:
        raise NotFoundError("message", digest)
    return _plain_text(said(message))


def _read(site: Site, step_id: str) -> tuple[StepSkeleton, StepReading]:
    with site.readers.read() as connection:
        found = get_step(connection, step_id, now_ns=time.time_ns())
        return found, read_step(connection, found.id)


def _plain_text(value: Any) -> Response:
    # nosniff comes with every answer (security.py): a browser shows this as text and nothing else.
    content = plain_text(value).encode("utf-8", "backslashreplace")
    return PlainTextResponse(content)
