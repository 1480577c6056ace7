"""The heartbeat beside a server: its process, API and commands."""
