"""Calls of models that the SDK makes itself, with the exact bytes by reference."""
