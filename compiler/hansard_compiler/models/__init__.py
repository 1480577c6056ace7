"""Records that several floors share, as pydantic models and plain dataclasses."""
