"""Tests of the command line and the plugin; `project` is a separate project for the plugin."""

collect_ignore = ["project"]
