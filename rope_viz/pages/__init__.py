"""The pages of the app, one folder each."""
