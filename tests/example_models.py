"""The models that pictures are tried with: a picture of a concept needs a model that has it."""

HAVING = {"decay/temperature": "ministral-3-3b"}
"""{picture: a model of the catalog that has what it shows}."""


def example_model(picture, usual):
    """Return the usual model of a test, or one that has what this picture shows."""
    return HAVING.get(picture.address, usual)
