"""The sentence above each figure, and the numbers in it."""
