"""Maintenance of memory: contradictions found, corrections linked, stale records counted."""

from hansard_collector.maintenance.maintainer import Maintainer
from hansard_collector.maintenance.result import MaintenanceResult, Skipped, result_json
from hansard_collector.maintenance.settings import MaintenanceSettings

__all__ = ["Maintainer", "MaintenanceResult", "MaintenanceSettings", "Skipped", "result_json"]
