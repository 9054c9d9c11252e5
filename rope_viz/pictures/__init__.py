"""Every picture of every page as a function of one value: the same for the app, its addresses and the command line."""
