"""Sending one turn of a replay: where to, through what, and which side effects it may have."""
