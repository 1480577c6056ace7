"""Find by name: pages, runs, steps, users, conversations and settings, on Ctrl-K."""
