"""A small model that reads: its weights, tasks, training and recall; and asking other models the same."""
