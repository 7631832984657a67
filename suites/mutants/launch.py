"""Start the broker with one seeded bug: `python -m urteil.suites.mutants.launch NAME -- FILE`.

NAME is a mutant, or the path of a drawn bug (`suites/drawn_bugs`). The file `mutant.mark` beside
the property file shows that the mutated line ran.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from urteil.suites.drawn_bugs.bug import SUFFIX, load_bug
from urteil.suites.drawn_bugs.changed_module import import_with_bug
from urteil.suites.mutants import MUTANTS
from urteil.suites.mutants.patching import Mark, NoSuchFunction

USAGE = "usage: python -m urteil.suites.mutants.launch NAME -- server.properties [ARGUMENT ...]"


def main(arguments: Sequence[str]) -> None:
    """Patch the broker and run it; exit with 254 on wrong usage, 255 if the patch does not fit."""
    if len(arguments) < 3 or arguments[1] != "--":
        _exit(254, USAGE)
    name, _, *rest = arguments
    mark = Mark(Path(rest[0]).resolve().parent / "mutant.mark")
    try:
        if name.endswith(SUFFIX):
            import_with_bug(load_bug(Path(name)), mark.hit)
        elif name in MUTANTS:
            MUTANTS[name].apply(mark)
        else:
            _exit(254, f"no mutant named {name!r}; known: {', '.join(MUTANTS)}")
    except NoSuchFunction as error:
        _exit(255, f"mutant {name}: {error}")
    except ValueError as error:
        _exit(254, str(error))
    sys.argv = ["urteil.broker", *rest]
    runpy.run_module("urteil.broker", run_name="__main__", alter_sys=True)


def _exit(code: int, message: str) -> None:
    sys.stderr.write(message + "\n")
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
