"""A config of a reader's own."""

# Other than any model of the list, so that a default would be seen.
LONGROPE = {
    "model_type": "phi3",
    "hidden_size": 384,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "max_position_embeddings": 16384,
    "original_max_position_embeddings": 4096,
    "rope_theta": 12345.0,
    "rope_scaling": {
        "type": "longrope",
        "short_factor": [1.0 + i / 96 for i in range(48)],
        "long_factor": [2.0 + i / 7 for i in range(48)],
    },
}
