"""Becomes the broker, with the settings of this container."""

from __future__ import annotations

import os
import sys

from urteil.compose.broker.settings import config_file, from_variables


def main() -> None:
    argv = [sys.executable, "-P", "-u", "-m", "urteil.broker", str(config_file())]
    for name, value in from_variables(os.environ).items():
        argv += ["--override", f"{name}={value}"]
    os.execv(sys.executable, argv)


if __name__ == "__main__":
    main()
