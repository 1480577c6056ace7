"""Tasks for review: what repeats, shown to whoever decides about it."""
