"""What makes replays in a server, and in a command that opens the store by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_compiler.policy.engine import Policy
from hansard_store.approvals.service import ApprovalService
from hansard_store.content.retention import Retention
from hansard_store.database.data_folder import DataFolder
from hansard_web.app.config import Config, script_in
from hansard_web.app.readers import Readers
from hansard_web.policy.decider import RecordingDecider
from hansard_web.policy.service import PolicyService, policy_of
from hansard_web.replay.engine import Replays
from hansard_web.replay.transport.provider_gate import ReplayGate
from hansard_web.sidecar.recorder import Outlet
from hansard_web.sidecar.request import SidecarService


def make_replays(
    sidecar_service: SidecarService | None,
    decider: RecordingDecider | None,
    store: ApprovalService | None = None,
) -> Replays | None:
    """Return what makes replays in an app; None where the app stores nothing."""
    if sidecar_service is None:
        return None
    return Replays(
        sidecar_service.site.readers,
        sidecar_service.outlet,
        model_server=sidecar_service.site.settings.model_server,
        script=sidecar_service.site.settings.script,
        policy=lambda: None if decider is None else _rules(decider.rules),
        gate=None if store is None else ReplayGate(store),
    )


@contextmanager
def replaying(folder: DataFolder, config: Config) -> Iterator[tuple[Replays, Readers, Pipeline]]:
    """Make replays without a server: with a pipeline of one's own over the same folder."""
    retention = Retention.of(folder, config.retention)
    pipeline = Pipeline(folder, RetentionPolicy(retention.mode, retention.redactor))
    pipeline.start()
    readers = Readers(folder)
    try:
        rules = PolicyService(folder, readers.read, config.policy)
        outlet = Outlet(folder, pipeline, retention)
        policy = policy_of(rules, retention, folder)
        store = ApprovalService(folder, retention=retention.mode, policy=policy, source="replay")
        replays = Replays(
            readers,
            outlet,
            model_server=config.model_server,
            script=script_in(config.script),
            policy=lambda: _rules(rules),
            gate=ReplayGate(store),
        )
        try:
            yield replays, readers, pipeline
        finally:
            replays.close()
            store.close()
    finally:
        readers.close()
        pipeline.close()


def _rules(rules: PolicyService) -> Policy | None:
    """Return the rules in force; None where there are none."""
    current = rules.in_force()
    return current.policy if current.put or current.read else None
