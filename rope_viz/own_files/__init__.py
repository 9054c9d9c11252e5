"""The user's own files: a config or vectors that come by a link, an upload, a drop or an address."""
