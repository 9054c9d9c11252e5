"""Formats in which a model's config comes: JSON, GGUF, params.json, Megatron's arguments."""
