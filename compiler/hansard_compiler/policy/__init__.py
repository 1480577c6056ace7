"""Policy: rules as data, and the engine that decides by them what an agent sees and does."""
