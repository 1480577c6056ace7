"""Notifications: page, API and command."""
