"""Wire formats of providers as recorded calls hold them, read into attributes."""
