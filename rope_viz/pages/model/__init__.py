"""My model: how to reach a context, and what each runtime computes from the config."""
