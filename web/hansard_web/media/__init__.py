"""Images, sound and files inside of recorded content: found, described, and served by address."""
