"""A package, so that fixtures can last as long as tests of this folder follow each other."""
