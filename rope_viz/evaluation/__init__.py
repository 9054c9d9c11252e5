"""Evaluation of served models, and the search for better frequencies."""
