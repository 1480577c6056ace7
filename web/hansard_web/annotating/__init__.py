"""Notes, scores and tags as the pages show and take them."""
