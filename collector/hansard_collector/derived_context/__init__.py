"""The derived context of a model call: what it was sent, compared with the call before it."""
