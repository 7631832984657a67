"""Cost of journals: throughput of the lab's clients with and without them.

    python bench/journal_overhead.py [--pairs N] [--seconds S] [--target urteil|kafka] [--json]

The lab's producer and consumer run at full speed on a cluster of one broker, each in a process of
its own. Runs alternate between a journal and one that only counts; payloads, checksums and the
watch over attempts are the same. A pair is two consecutive runs. Two ratios are printed:
records/s, which other work on the machine disturbs, and records for each second of the client's
own processor time, which other work hardly disturbs. The goal is at least 0.95 of the throughput
without a journal.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from urteil.harness import standing
from urteil.harness.clients.consumers import consumer
from urteil.harness.clients.producers import producer
from urteil.harness.clients.spec import ClientSpec, load_spec
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import JournalWriter, Ok, Poll
from urteil.harness.run.topics import create_topics, fit_topics
from urteil.harness.scenario import ClusterSpec, Scenario, TopicFact, TopicSpec, WorkloadSpec, save

GOAL = 0.95
CLUSTER = "bench-recording"
TOPIC = TopicSpec(name="recording", partitions=3, replication_factor=1)
LOAD = WorkloadSpec(topics=(TOPIC,), rate_records_per_s=1e9)
WARM_S = 1.0
S = 1_000_000_000
MEASURES = {"rate": "records/s", "cpu_rate": "records a second of processor time"}
KINDS = {kind.name: kind for kind in (producer.KIND, consumer.KIND)}


class Counting(JournalWriter):
    """A journal that counts records and writes them only if `records` is true."""

    def __init__(self, path: Path, *, records: bool) -> None:
        super().__init__(path)
        self._records = records
        self.counted: list[tuple[int, int]] = []
        self.total = 0

    def write(self, entry: msgspec.Struct) -> None:
        if isinstance(entry, Ok):
            self._count(entry.complete_ns, 1)
        elif isinstance(entry, Poll):
            self._count(entry.complete_ns, sum(len(part.records) for part in entry.slices))
        if self._records:
            super().write(entry)

    def write_all(self, entries: list[Ok]) -> None:
        for entry in entries:
            self._count(entry.complete_ns, 1)
        if self._records:
            super().write_all(entries)

    def _count(self, at_ns: int, records: int) -> None:
        self.counted.append((at_ns, records))
        self.total += records

    def rate(self, warm_s: float) -> float:
        """Records a second, from `warm_s` after the first on."""
        from_ns = self.counted[0][0] + int(warm_s * S)
        warm = [(at_ns, records) for at_ns, records in self.counted if at_ns >= from_ns]
        took_s = (warm[-1][0] - warm[0][0]) / S
        return sum(records for _, records in warm[1:]) / took_s


class Until(Stop):
    """The stop condition of a client: a time or a number of records."""

    def __init__(self, journal: Counting, seconds: float, records: int) -> None:
        super().__init__()
        self._journal = journal
        self._end = time.monotonic() + seconds
        self._records = records

    def is_set(self) -> bool:
        return time.monotonic() >= self._end or self._journal.total >= self._records


def main() -> None:
    """Print a line for each pair, then the medians."""
    args = _arguments()
    if args.client is not None:
        _client(args)
        return
    cluster = standing.start_usual(name=CLUSTER, brokers=1, target=args.target)
    try:
        figures = _measure(tuple(cluster.bootstrap), args)
    finally:
        standing.stop_standing(CLUSTER)
    print(json.dumps(figures, indent=2) if args.json else _text(figures))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6.0, help="of a producer's run")
    parser.add_argument("--target", default="urteil")
    parser.add_argument("--json", action="store_true", help="print JSON alone")
    parser.add_argument("--client", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--records", type=int, default=sys.maxsize, help=argparse.SUPPRESS)
    parser.add_argument("--silent", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.pairs < 1 or args.seconds < 2 * WARM_S:
        parser.error(f"at least one pair, of at least {2 * WARM_S:g} s")
    return args


def _measure(bootstrap: tuple[str, ...], args: argparse.Namespace) -> dict[str, Any]:
    scenario = Scenario(name="recording", cluster=ClusterSpec(brokers=1), workload=LOAD)
    create_topics(bootstrap, fit_topics(scenario))
    figures: dict[str, Any] = {"target": args.target}
    written = sys.maxsize
    for kind in KINDS:
        pairs = []
        for number in range(args.pairs):
            order = (True, False) if number % 2 else (False, True)
            done = {recorded: _run(kind, bootstrap, args, recorded, written) for recorded in order}
            pairs.append({"with": done[True], "without": done[False]})
            if kind == "producer":
                both = done[True]["records"] + done[False]["records"]
                written = both if written == sys.maxsize else written + both
        figures[kind] = {"pairs": pairs} | {
            measure: statistics.median(_ratio(pair, measure) for pair in pairs)
            for measure in MEASURES
        }
    return figures


def _ratio(pair: dict[str, dict[str, float]], measure: str) -> float:
    return pair["with"][measure] / pair["without"][measure]


def _run(
    kind: str, bootstrap: tuple[str, ...], args: argparse.Namespace, recorded: bool, written: int
) -> dict[str, float]:
    """One client process; a consumer reads all that the producers wrote."""
    with tempfile.TemporaryDirectory(prefix="urteil-recording-") as folder:
        topic = TopicFact(name=TOPIC.name, topic_id="-", partitions=3, replication_factor=1)
        spec = ClientSpec(
            run="bench",
            client=kind,
            session=0,
            kind=kind,
            bootstrap=bootstrap,
            journal=str(Path(folder) / "journal"),
            topics=(topic,),
            workload=LOAD,
            rate_records_per_s=LOAD.rate_records_per_s,
        )
        path = Path(folder) / "spec.json"
        save(path, KINDS[kind].complete(spec))
        command = [sys.executable, __file__, "--client", str(path), "--seconds", str(args.seconds)]
        if kind == "consumer":
            command += ["--records", str(written)]
        if not recorded:
            command.append("--silent")
        answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    figures: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return figures


def _client(args: argparse.Namespace) -> None:
    spec = load_spec(args.client)
    seconds = args.seconds if spec.kind == "producer" else 120.0
    with Counting(Path(spec.journal), records=not args.silent) as journal:
        began_s = time.process_time()
        work = KINDS[spec.kind].work
        assert work is not None
        work(spec, journal, Until(journal, seconds, args.records))
        used_s = time.process_time() - began_s
        warm_s = WARM_S if spec.kind == "producer" else 0.0
        figures = {"rate": journal.rate(warm_s), "cpu_rate": journal.total / used_s}
        print(json.dumps(figures | {"records": journal.total}))


def _text(figures: dict[str, Any]) -> str:
    lines = []
    for kind in KINDS:
        for measure, unit in MEASURES.items():
            for pair in figures[kind]["pairs"]:
                with_journal, other = pair["with"][measure], pair["without"][measure]
                line = f"{kind}: {with_journal:,.0f} {unit} with, {other:,.0f} without a journal"
                lines.append(f"{line}: {with_journal / other:.3f}")
            ratio = figures[kind][measure]
            met = "met" if ratio >= GOAL else "MISSED"
            lines.append(f"{kind}: median ratio of {unit} {ratio:.3f}, goal {GOAL}: {met}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
