"""Lists as files: CSV, JSON, Markdown and HTML, of every table that a page shows."""
