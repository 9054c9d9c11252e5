"""Trainers against servers."""
