"""Clients of models: the exact bytes of their calls, and the instrumentors that others keep."""
