"""The `hansard` command: found by entry points, so that the SDK stays light."""
