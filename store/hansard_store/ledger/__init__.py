"""What was received and what became of it, by sender and signal."""
