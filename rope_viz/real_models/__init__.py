"""Real models: GGUF files, captures of q and k, measurements of heads and losses."""
