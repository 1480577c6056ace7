"""A compile of an earlier request, read back from the store, to be sent to a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hansard import semconv
from hansard._context.compiled_step import CompiledStep, RecordedCompile
from hansard_collector.derivation.rederivation import read_span
from hansard_compiler.errors import NotFoundError
from hansard_store.compilations.queries import Compilation, compilations_with_id
from hansard_web.sidecar.addresses import Place
from hansard_web.sidecar.compiles import read_json
from hansard_web.sidecar.request import Door


class RecalledStep(CompiledStep):
    """What a model call needs of a compile; why each item is in it, the receipts tell."""

    def __init__(
        self, compilation: Compilation, context: Mapping[str, Any], recorded: RecordedCompile
    ) -> None:
        self.checks = ()
        self.adapter = None
        self.place = None
        self.recorded = recorded
        self._row = compilation.row
        self._context = context

    @property
    def payload(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._context["rendered_payload"]
        return found

    @property
    def id(self) -> str:
        return self._row.id

    @property
    def hash(self) -> str:
        return self._row.hash or ""

    @property
    def stable_prefix_hash(self) -> str:
        return self._row.stable_prefix_hash or ""

    @property
    def volatile_suffix_hash(self) -> str:
        return self._row.volatile_suffix_hash or ""

    @property
    def provider(self) -> str:
        return str(self._context["provider"])

    @property
    def model(self) -> str:
        return str(self._context["model"])


def recall(door: Door, place: Place, compilation_id: str) -> RecalledStep:
    """Return a compile of this run; raises NotFoundError, or NotKept where its result is gone."""
    with door.sidecar.readers.read() as connection:
        found = [
            one
            for one in compilations_with_id(connection, compilation_id)
            if one.run_id == place.trace_id
        ]
        if not found:
            raise NotFoundError("compilation of this run", compilation_id)
        attributes = read_span(connection, found[0].span).view().attributes
    compilation = found[0]
    context = read_json(door, compilation.row.result_ref, what="the compiled context")
    ports = attributes.get(semconv.COMPILE_PORTS)
    recorded = RecordedCompile(
        step_id=compilation.step_id,
        request_ref=compilation.row.request_ref or "",
        result_ref=compilation.row.result_ref or "",
        is_whole=attributes.get(semconv.COMPILE_WHOLE) is True,
        ports=tuple(map(str, ports)) if isinstance(ports, list) else (),
    )
    return RecalledStep(compilation, context, recorded)
