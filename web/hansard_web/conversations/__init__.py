"""Conversations: the runs that share a conversation id, with their messages."""
