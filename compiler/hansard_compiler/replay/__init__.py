"""Replay, the pure part: what may change, what is refused, where a fork parts, how much responses
spread. Sending and storing are the server's work (`hansard_web.replay`)."""
