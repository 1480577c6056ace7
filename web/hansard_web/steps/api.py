"""One step, whole: its record read again with everything it means."""

from __future__ import annotations

import time

from hansard_web.api.router import ApiResponse, NounRouter
from hansard_web.app.site import SiteDep
from hansard_web.steps.bodies import step_body

router = NounRouter("steps")


@router.get("/v1/steps/{step_id}", "steps.bodies.StepBody")
def one_step(site: SiteDep, step_id: str) -> ApiResponse:
    """Show a step by `<trace>-<span>`, `<trace>-<span>.server`, or a unique beginning of one."""
    with site.readers.read() as connection:
        return ApiResponse(step_body(connection, step_id, now_ns=time.time_ns()))
