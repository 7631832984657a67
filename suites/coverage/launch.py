"""Start the broker and mark its lines: `python -m urteil.suites.coverage.launch FOLDER -- FILE`.

FOLDER gets the files of marks (`line_files`).
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from urteil.suites.coverage.compilation import compile_with_probes
from urteil.suites.coverage.line_files import set_folder
from urteil.suites.source_hook import PACKAGE, install

USAGE = "usage: python -m urteil.suites.coverage.launch FOLDER -- server.properties [ARGUMENT ...]"


def main(arguments: Sequence[str]) -> None:
    """Run the broker with probes; exit with 254 on wrong usage."""
    if len(arguments) < 3 or arguments[1] != "--":
        sys.stderr.write(USAGE + "\n")
        sys.exit(254)
    folder, _, *rest = arguments
    set_folder(Path(folder))
    install(compile_with_probes)
    sys.argv = [PACKAGE, *rest]
    runpy.run_module(PACKAGE, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
