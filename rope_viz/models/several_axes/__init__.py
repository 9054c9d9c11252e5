"""Configs of models whose positions have several axes, by model family."""
