"""The live feed: what changed, sent to every open page."""
