"""Search over what was said: page, API and command."""
