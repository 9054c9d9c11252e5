"""Bytes of KV cache and weights, and the number of parameters."""
