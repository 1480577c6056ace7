"""The JSON API of DESIGN §14."""
