"""Span ids that a CLIENT and a SERVER share, as Zipkin-style tracers do (otlp.md §11)."""

from __future__ import annotations


def shared_side(span: str) -> str:
    """Return the SQL that is 1 for a SERVER span whose id a CLIENT span has, too; `span` names it.

    Only such a step is called `<trace>-<span>.server`: alone, a SERVER span has the plain name.
    """
    return f"""{span}.side AND EXISTS (
    SELECT 1 FROM span AS client
    WHERE client.trace_id = {span}.trace_id AND client.span_id = {span}.span_id AND client.side = 0
  )"""


def step_id_of(trace_id: bytes, span_id: bytes, side: int) -> str:
    """Return the id a step has in addresses: the SERVER half of a shared id says so."""
    return f"{trace_id.hex()}-{span_id.hex()}{'.server' if side else ''}"
