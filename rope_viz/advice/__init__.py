"""What to do about a config: what is wrong with it, how to write it for a runtime, how far it can be extended."""
