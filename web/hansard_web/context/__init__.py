"""Context of a model call: the derived one and a native compile, as pages and bodies."""
