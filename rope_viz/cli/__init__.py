"""The same in a terminal."""
