"""Checks of `hansard verify` that hold one part of the store against another."""
