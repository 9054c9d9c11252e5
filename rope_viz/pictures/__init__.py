"""Every picture of every page as a function of one value: the same for the app, its addresses and the command line."""

ROUTE = "/rope-viz/picture"
"""Where the app has its pictures, under its base path."""
