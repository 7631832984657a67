"""Size and drawing time of the report of a long run: `python bench/report_size.py [SENDS]`."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from generated_histories import History

from urteil.reports import write_reports


def main() -> None:
    sends = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        History(sends).write(Path(folder))
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        page = write_reports(Path(folder))[-1]
        seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(
            f"{sends:,} sends: {page.stat().st_size / 1e6:.2f} MB in {seconds:.1f} s "
            f"({used:.1f} s of processor time)"
        )


if __name__ == "__main__":
    main()
