"""Where approvals, memory, transcripts and replays live: in an own store, or at a server."""
