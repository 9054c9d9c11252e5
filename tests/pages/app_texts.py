"""What a page says, in a run without a browser."""


def texts_of(app):
    """Return all Markdown of the page's main part."""
    return " ".join(each.value for each in app.main.markdown)
