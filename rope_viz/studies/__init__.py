"""What follows from an embedding: the algebra, scores over distance, decay, attention, precision."""
