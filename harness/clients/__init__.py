"""The clients of a run. Each client is a process of its own that journals its operations."""
