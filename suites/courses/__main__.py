"""`python -m urteil.suites.courses [LAB...]`: play the labs and print their table.

With `--page FILE` the table goes into that page (docs/results/courses.md). Exit code 1 when a lab
has findings.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path

from urteil.suites.courses.clusters import standing_desks
from urteil.suites.courses.lab import Lab
from urteil.suites.courses.labs import ALL
from urteil.suites.courses.player import LabResult, play_lab

EXIT_TERMINATED = 143
HEAD = """# Labs of courses, compared

The labs of `suites/courses/` over our cluster and over Apache Kafka 3.9.1, each command by Kafka's
own tool of 3.9.1, or of 2.8.0 where the lab says so. `equal` counts the commands that printed the
same on both, but for times, generated ids, addresses and placement. A command that may differ is
named with its reason. Seconds are those of the lab's steps on both clusters at once, without the
start of the clusters.

This page is written by `python -m urteil.suites.courses --page docs/results/courses.md`, which
replaces the rows of the labs that it plays.

| lab | about | played on | seconds | commands | equal | differences |
|---|---|---|---|---|---|---|
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the named labs, or all. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m urteil.suites.courses")
    parser.add_argument("labs", nargs="*", metavar="LAB", help="names of labs")
    parser.add_argument("--page", type=Path, help="the page to write")
    options = parser.parse_args(arguments)
    known = {lab.name for lab in ALL}
    if unknown := sorted(set(options.labs) - known):
        parser.error(f"no lab {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))  # the clusters end too
    results = list(_play([lab for lab in ALL if not options.labs or lab.name in options.labs]))
    rows = {result.lab.name: row_of(result, date.today()) for result in results}
    if options.page:
        text = options.page.read_text() if options.page.exists() else ""
        options.page.write_text(page_with(text, rows))
    else:
        print(page_with("", rows))
    return int(any(result.findings for result in results))


def _play(labs: Sequence[Lab]) -> Iterator[LabResult]:
    for cluster, group in groupby(labs, key=lambda lab: lab.cluster):
        with tempfile.TemporaryDirectory() as folder, standing_desks(cluster, Path(folder)) as both:
            for lab in group:
                result = play_lab(lab, both)
                print(f"{lab.name}: {result.seconds:.0f} s", file=sys.stderr)
                for finding in result.findings:
                    print(finding, file=sys.stderr, flush=True)
                yield result


def row_of(result: LabResult, day: date) -> str:
    """The row of a played lab."""
    lab = result.lab
    differences = [*result.reasons, *(f"finding: {finding}" for finding in result.findings)]
    text = "; ".join(differences).replace("\n", " ").replace("|", "\\|")
    counts = f"{result.seconds:.0f} | {result.commands} | {result.equal}"
    return f"| {lab.name} | {lab.about} | {day} | {counts} | {text} |"


def page_with(text: str, rows: Mapping[str, str]) -> str:
    """The page with these rows by lab in place of earlier ones, in the order of the labs."""
    earlier = {line.split(" | ")[0].removeprefix("| "): line for line in text.splitlines()}
    played = {**earlier, **rows}
    lines = [played[lab.name] for lab in ALL if lab.name in played]
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
