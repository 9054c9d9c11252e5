"""How to reach a longer context, and the config for it."""
