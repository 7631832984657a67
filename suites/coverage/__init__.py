"""Which lines of the broker a run executes. The broker runs under `launch`, with probes in it."""
