"""Probes: tiny models with random weights and the user's RoPE parameters, by which a running engine is asked."""
