"""The front door's tests; `project` is another project's, which its tests run as such."""

collect_ignore = ["project"]
