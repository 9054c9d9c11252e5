"""Comparison of a running model, or of any engine, with what a config means."""
