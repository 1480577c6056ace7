"""Replays of recorded model calls, requested from a program."""
