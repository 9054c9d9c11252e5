"""Which released model a config is."""
