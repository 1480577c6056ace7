"""Export: the queue of finished spans, the threads that send it, and what was dropped."""
