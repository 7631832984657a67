"""The clients of a run: producers, readers and group members, each a process of its own."""
