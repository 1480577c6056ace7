"""Scanning: top stories of an outside source, held against the interests in memory.

Nothing here runs by itself: `hansard scan` does it, when a person or cron calls it and the setting
`outbound` permits it.
"""
