"""What a rotary embedding is, and its numbers: spec, scaling methods, spectrum, exact angles."""
