"""The demo model: weights, tasks, training and recall; the same questions for other models; captures of q and k."""
