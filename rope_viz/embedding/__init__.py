"""Rotary embeddings and their numbers: specs, scaling methods, spectrum, exact angles, position ids."""
