"""What a replay has its provider do besides answering: refused, or approved before it is sent."""
