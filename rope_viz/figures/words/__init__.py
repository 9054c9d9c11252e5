"""The sentence over a figure, with the numbers that it speaks of."""
