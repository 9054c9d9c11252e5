"""Every picture of every page as a function of one request, for the app, the picture route and the command line."""

ROUTE = "/rope-viz/picture"
"""Path of the picture route, below the app's base path."""
