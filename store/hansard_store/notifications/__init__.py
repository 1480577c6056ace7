"""Notifications: an outbox of states that people are notified of, and its deliveries."""
