"""Programs that processes of applications run."""
