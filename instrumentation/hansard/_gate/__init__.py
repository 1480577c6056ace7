"""The confirmation gate: tools that change something ask first, and run exactly what was approved.

Gating fails closed. What cannot be classified, described, bound, saved or decided does not run, and
says why with an error of `hansard.errors`. Nothing here depends on telemetry.
"""
