"""The JSON API, the web pages and the command line."""
