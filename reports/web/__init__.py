"""The web view: the runs of a folder, read only, rendered on the server."""
