"""What knows all pages: the gallery, reports, pictures by name."""
