"""Replay, the pure part: what may be changed, what is refused, where a fork parts, how far answers
spread. Sending and storing are the server's work (`hansard_web.replay`)."""
