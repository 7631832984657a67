"""Cases of odd files beside an undamaged log, as other releases, crashes and power cuts leave them.

A case changes a log directory that holds one partition. All records stay, unless the case lists the
remaining ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.broker.log.old_folders import OldLog, Row

HEX = "0123456789abcdef" * 2
CHECKPOINTS = (
    "recovery-point-offset-checkpoint", "log-start-offset-checkpoint",
    "replication-offset-checkpoint", "cleaner-offset-checkpoint",
)  # fmt: skip
GARBAGE = b"\x93\x00\xff{no: file of ours\n" * 7
NO_PRODUCERS = b"\x00\x01\x48\x67\x4b\xc7\x00\x00\x00\x00"
"""A producer snapshot of version 1 without entries."""


@dataclass(frozen=True)
class Place:
    """Where a case acts: a log directory, and its one partition with the log in it."""

    data: Path
    folder: Path
    log: OldLog

    def first(self, suffix: str) -> Path:
        return self.folder / f"{self.log.bases[0]:020d}{suffix}"

    def last(self, suffix: str) -> Path:
        return self.folder / f"{self.log.bases[-1]:020d}{suffix}"


@dataclass(frozen=True)
class Case:
    """`left` says which rows there are after it, if not all. Apache Kafka 3.9.1 does not start at
    all where a case `stops_kafka`."""

    name: str
    act: Callable[[Place], None]
    left: Callable[[OldLog], list[Row]] | None = None
    stops_kafka: bool = False

    def rows(self, log: OldLog) -> list[Row]:
        return self.left(log) if self.left else log.rows


def _put(where: Callable[[Place], Path], content: bytes) -> Callable[[Place], None]:
    return lambda place: void(where(place).write_bytes(content))


def _gone(where: Callable[[Place], Path]) -> Callable[[Place], None]:
    return lambda place: where(place).unlink(missing_ok=True)


def void(_: object) -> None:
    """For the sake of what was done."""


def _beside(name: str) -> Callable[[Place], Path]:
    return lambda place: place.folder / name


def _above(name: str) -> Callable[[Place], Path]:
    return lambda place: place.data / name


# Within a partition's folder


_CUT_METADATA = b"version: 0\ntopic_id: jyBLnm1A"


def _metadata() -> list[Case]:
    file = _beside("partition.metadata")
    contents = {
        "garbage": GARBAGE,
        "zeros": bytes(43),
        "with the zero id": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
    }
    return [
        Case("partition.metadata missing", _gone(file)),
        Case("partition.metadata empty", _put(file, b""), stops_kafka=True),
        Case("partition.metadata cut", _put(file, _CUT_METADATA), stops_kafka=True),
        *(Case(f"partition.metadata {how}", _put(file, data)) for how, data in contents.items()),
        Case(
            "partition.metadata of version 1",
            lambda place: void(
                file(place).write_text(file(place).read_text().replace("version: 0", "version: 1"))
            ),
        ),
    ]


def _snapshot(place: Place, content: bytes) -> None:
    for offset in (*place.log.bases[1:], place.log.rows[-1].offset + 1):
        (place.folder / f"{offset:020d}.snapshot").write_bytes(content)


def _snapshots() -> list[Case]:
    contents = {
        "without entries": NO_PRODUCERS,
        "empty": b"",
        "of zeros": bytes(10),
        "garbage": GARBAGE,
        "of version 0": b"\0\0" + NO_PRODUCERS[2:],
        "of version 7": b"\0\7" + NO_PRODUCERS[2:],
        "with a wrong checksum": NO_PRODUCERS[:2] + bytes(4) + NO_PRODUCERS[6:],
        "cut": NO_PRODUCERS[:-3],
    }
    return [
        Case(f"snapshots {how}", lambda place, data=data: _snapshot(place, data))
        for how, data in contents.items()
    ]


def _epochs() -> list[Case]:
    file = _beside("leader-epoch-checkpoint")
    contents = {
        "empty": b"",
        "without entries": b"0\n0\n",
        "of version 1": b"1\n0\n",
        "garbage": GARBAGE,
        "zeros": bytes(8),
        "cut": b"0\n2\n0 0\n",
        "longer than it says": b"0\n1\n0 0\n1 5\n",
        "not rising": b"0\n2\n3 0\n1 0\n",
        "beyond the end": b"0\n2\n0 0\n5 999999\n",
        "in the midst of a line": b"0\n1\n0",
    }
    return [
        Case("leader-epoch-checkpoint missing", _gone(file)),
        *(
            Case(f"leader-epoch-checkpoint {how}", _put(file, data))
            for how, data in contents.items()
        ),
    ]


def _indexes() -> list[Case]:
    contents = {
        "empty": b"",
        "preallocated": bytes(1200),
        "garbage": GARBAGE,
        "of odd length": bytes(7),
    }
    return [
        Case(
            f"{suffix} {how} ({which})",
            _put(lambda place, w=which, s=suffix: getattr(place, w)(s), data),
            stops_kafka=suffix == ".txnindex" and how == "garbage",
        )
        for suffix in (".index", ".timeindex", ".txnindex")
        for which in ("first", "last")
        for how, data in contents.items()
    ]


# What an interrupted compaction, split or deletion left


def _cleaned_rows(log: OldLog) -> list[Row]:
    """Without what the first two segments lose by `_swap`."""
    first = [batch for batch in log.batches if batch.file != f"{log.bases[-1]:020d}.log"]
    gone = first[1::2]
    return [row for batch in log.batches if batch not in gone for row in batch.rows]


def _swap(place: Place, *, suffix: str, keep_sources: bool, indexes: bool = True) -> None:
    """Every second batch of the first two segments, as one new segment."""
    base, last = place.log.bases[0], f"{place.log.bases[-1]:020d}.log"
    data = b"".join(batch.data for batch in [b for b in place.log.batches if b.file != last][::2])
    for old in place.log.bases[:-1]:
        for kind in (".log", ".index", ".timeindex"):
            path = place.folder / f"{old:020d}{kind}"
            if path.exists() and not keep_sources:
                path.rename(path.with_name(path.name + ".deleted"))
    (place.folder / f"{base:020d}.log{suffix}").write_bytes(data)
    if indexes:
        for kind in (".index", ".timeindex"):
            (place.folder / f"{base:020d}{kind}{suffix}").write_bytes(b"")


def _damaged_swap(damage: Callable[[bytes], bytes]) -> Callable[[Place], None]:
    def act(place: Place) -> None:
        _swap(place, suffix=".swap", keep_sources=True)
        path = place.first(".log.swap")
        path.write_bytes(damage(path.read_bytes()))

    return act


def _split(first: str, second: str) -> Callable[[Place], None]:
    """The first segment in two halves beside itself, as a split of it writes them."""

    def act(place: Place) -> None:
        here = [batch for batch in place.log.batches if batch.file == place.first(".log").name]
        middle = len(here) // 2
        for half, suffix in ((here[:middle], first), (here[middle:], second)):
            base = half[0].rows[0].offset if half[0] is not here[0] else place.log.bases[0]
            data = b"".join(batch.data for batch in half)
            (place.folder / f"{base:020d}.log{suffix}").write_bytes(data)

    return act


def _leftovers() -> list[Case]:
    return [
        Case(".cleaned files", partial(_swap, suffix=".cleaned", keep_sources=True)),
        Case(".swap files", partial(_swap, suffix=".swap", keep_sources=True), _cleaned_rows),
        Case(
            ".swap files without indexes",
            partial(_swap, suffix=".swap", keep_sources=True, indexes=False),
            _cleaned_rows,
        ),
        Case(
            ".swap files, their sources .deleted",
            partial(_swap, suffix=".swap", keep_sources=False),
            _cleaned_rows,
        ),
        Case("cut .swap file", _damaged_swap(lambda data: data[:-7])),
        Case("damaged .swap file", _damaged_swap(lambda data: data[:-1] + bytes([data[-1] ^ 1]))),
        Case("two .swap files of a split", _split(".swap", ".swap")),
        Case("one .swap file of a split, the other .cleaned", _split(".cleaned", ".swap")),
        Case("two .cleaned files of a split", _split(".cleaned", ".cleaned")),
        Case(".index.swap alone", _put(lambda place: place.first(".index.swap"), b"")),
        Case(".timeindex.swap alone", _put(lambda place: place.first(".timeindex.swap"), b"")),
        Case(".log.deleted", _put(lambda place: place.first(".log.deleted"), GARBAGE)),
        Case(".index.deleted", _put(lambda place: place.first(".index.deleted"), GARBAGE)),
        Case(".snapshot.deleted", _put(_beside(f"{0:020d}.snapshot.deleted"), b"")),
        Case("orphaned indexes", _put(_beside(f"{99_999:020d}.index"), bytes(16))),
        Case("unknown files", _put(_beside("notes.txt"), GARBAGE)),
        Case("empty last segment", lambda place: void(
            (place.folder / f"{place.log.rows[-1].offset + 1:020d}.log").write_bytes(b""))),
    ]  # fmt: skip


# Beside the partitions' folders


def _checkpoint(name: str, how: str, place: Place) -> None:
    path = place.data / name
    slot, end = place.folder.name.rsplit("-", 1), place.log.rows[-1].offset + 1
    row = f"{slot[0]} {slot[1]} "
    own = row + str(end if name.startswith(("rec", "rep")) else 0)
    texts = {
        "empty": "",
        "garbage": GARBAGE.decode("latin-1"),
        "of version 1": f"1\n1\n{own}\n",
        "with unknown topics": f"0\n3\ngone 0 5\n{own}\n__gone 7 99\n",
        "longer than it says": f"0\n1\n{own}\ngone 0 5\n",
        "cut": f"0\n3\n{own}\n",
        "in the midst of a line": f"0\n1\n{row}",
        "with a row twice": f"0\n2\n{own}\n{own}\n",
        "without entries": "0\n0\n",
        "zeros": "\0" * 20,
        "negative": f"0\n1\n{row}-1\n",
    }
    if name.startswith("rec"):
        texts["beyond the end"] = f"0\n1\n{row}{end + 1000}\n"
    if how == "missing":
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(texts[how].encode("latin-1"))


HOW_CHECKPOINTS = (
    "missing", "empty", "garbage", "of version 1", "with unknown topics", "longer than it says",
    "cut", "in the midst of a line", "with a row twice", "without entries", "zeros", "negative",
)  # fmt: skip


def _checkpoints() -> list[Case]:
    pairs = [(name, how) for name in CHECKPOINTS for how in HOW_CHECKPOINTS]
    pairs.append((CHECKPOINTS[0], "beyond the end"))
    return [
        Case(f"{name} {how}", lambda place, n=name, h=how: _checkpoint(n, h, place))
        for name, how in pairs
    ]


def _folder(name: str) -> Callable[[Place], None]:
    def act(place: Place) -> None:
        folder = place.data / name.format(topic=place.folder.name.rsplit("-", 1)[0])
        folder.mkdir(exist_ok=True)
        (folder / f"{0:020d}.log").write_bytes(place.log.batches[0].data)

    return act


def _folders() -> list[Case]:
    names = f"gone-0.{HEX}-delete", f"gone-1.{HEX}-stray", f"gone-2.{HEX}-future"
    others = "{topic}-0.copy", "lost+found", "backup"
    return [
        *(Case(f"folder {name}", _folder(name)) for name in names),
        *(Case(f"folder {name}", _folder(name), stops_kafka=True) for name in others),
    ]


def _clean_marker() -> list[Case]:
    contents = {"empty": b"", "garbage": GARBAGE, "of 3.9": b'{"version":0,"brokerEpoch":7}'}
    file = _above(".kafka_cleanshutdown")
    return [
        Case(".kafka_cleanshutdown missing", _gone(file)),
        *(Case(f".kafka_cleanshutdown {how}", _put(file, data)) for how, data in contents.items()),
    ]


META = "version=0\nbroker.id=1\ncluster.id=cluster\n"


def _changed_meta(change: Callable[[str], str]) -> Callable[[Place], None]:
    """`change` gets what a broker wrote there, without its comments."""

    def act(place: Place) -> None:
        path = place.data / "meta.properties"
        lines = path.read_text().splitlines() if path.exists() else META.splitlines()
        text = "".join(f"{line}\n" for line in lines if not line.startswith("#"))
        path.write_bytes(change(text).encode())

    return act


def _meta() -> list[Case]:
    changes: dict[str, Callable[[str], str]] = {
        "with comments": lambda text: f"#\n! written\n{text}",
        "with the line ends of Windows": lambda text: text.replace("\n", "\r\n"),
        "with more keys": lambda text: f"{text}directory.id=eW91LWFyZS1hLWRpci4aaQ\nfuture.key=7\n",
        "with spaces": lambda text: text.replace("=", " = "),
        "with colons": lambda text: text.replace("=", ":"),
        "without a broker": lambda text: _without(text, "broker.id"),
        "without a cluster": lambda text: _without(text, "cluster.id"),
        "without a version": lambda text: _without(text, "version"),
    }
    return [
        Case("meta.properties missing", _gone(_above("meta.properties"))),
        *(Case(f"meta.properties {how}", _changed_meta(do)) for how, do in changes.items()),
    ]


def _without(text: str, key: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(key))


CASES = [
    *_metadata(), *_snapshots(), *_epochs(), *_indexes(), *_leftovers(), *_checkpoints(),
    *_folders(), *_clean_marker(), *_meta(),
]  # fmt: skip
