"""How people say it: config.json of either generation, uploads, links, and a catalog of real models."""
