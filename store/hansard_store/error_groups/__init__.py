"""Groups of errors: the derived rows of failed steps, lists, and what people decided."""
