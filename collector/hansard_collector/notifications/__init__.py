"""Notifications: the outbox is filled, conditions are watched, and webhooks are sent."""
