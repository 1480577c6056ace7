"""Which processes and runs are alive: heartbeats of senders, and runs that fell silent."""
