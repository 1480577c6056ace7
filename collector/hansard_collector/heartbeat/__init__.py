"""The heartbeat: a periodic cycle that checks what is recorded, and changes no agent's work."""
