"""Read the texts of a page that runs without a browser."""


def texts_of(app):
    """Return all Markdown of the page's main part."""
    return " ".join(each.value for each in app.main.markdown)
