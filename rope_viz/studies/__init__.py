"""Quantities that follow from an embedding: rotation algebra, scores over distance, decay, attention, precision."""
