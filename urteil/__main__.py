"""`python -m urteil` is the console script `urteil`."""

from urteil.cli.main import main

main()
