"""The passes of a compile, a module each; `compile/engine.py` holds their order."""
