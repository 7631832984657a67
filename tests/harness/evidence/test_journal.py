"""A journal loses its last, unfinished entry and nothing else, wherever it is cut."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urteil.harness.evidence.journal import (
    Begin,
    Fail,
    Got,
    Info,
    JournalReader,
    JournalWriter,
    Ok,
    Poll,
    Send,
    Slice,
)

BEGIN = Begin(
    run="r1", client="p1", session=1, kind="producer", at_ns=1, wall_ns=2, boot_id="b", pid=3,
    library="kafka-python", version="3", topic_ids={"t": "id"}, acks=-1, idempotent=True,
)  # fmt: skip

texts = st.none() | st.text(max_size=8)
numbers = st.none() | st.integers(-1, 2**62)
sends = st.builds(Send, st.integers(0, 2**40), st.integers(0), st.text(max_size=5),
                  st.integers(0, 99), texts, st.integers(0, 2**41))  # fmt: skip
completions = st.sampled_from([Ok, Fail, Info]).flatmap(
    lambda kind: st.builds(
        kind, st.integers(0, 2**40), st.integers(0), texts, st.integers(0, 9), st.booleans(),
        numbers, numbers, numbers, numbers, numbers, numbers, numbers,
    )
)  # fmt: skip
gots = st.builds(Got, st.integers(0), texts, texts, st.booleans(), numbers, st.integers(0))
slices = st.builds(Slice, st.text(max_size=5), st.integers(0, 9), st.integers(0), numbers, numbers,
                   texts, st.lists(gots, max_size=3))  # fmt: skip
polls = st.builds(Poll, st.integers(0), st.integers(0), st.integers(0), st.just("ok"), texts,
                  numbers, st.lists(slices, max_size=2))  # fmt: skip
entries = st.lists(sends | completions | polls, max_size=8)


def write(path, entries, *, end=True):
    path.unlink(missing_ok=True)
    with JournalWriter(path) as journal:
        for entry in entries:
            journal.write(entry)
        if end:
            journal.end(99)


@settings(max_examples=50)
@given(entries)
def test_written_entries_are_read(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("journal") / "p1.jsonl"
    write(path, [BEGIN, *written])
    reader = JournalReader(path)
    assert list(reader) == [BEGIN, *written]
    assert reader.state.ended_properly
    assert reader.state.end_ns == 99


def test_entries_written_together_are_read_one_by_one(tmp_path):
    acked = [Ok(op, op, None, 1, False, 0, op, 1, 7, 0, op, op) for op in range(3)]
    with JournalWriter(tmp_path / "j") as journal:
        journal.write(BEGIN)
        journal.write_all(acked)
        journal.write_all([])
        journal.end(9)
    reader = JournalReader(tmp_path / "j")
    assert list(reader) == [BEGIN, *acked]
    assert reader.state.ended_properly


def test_journal_cut_at_any_byte_loses_the_last_entry_alone(tmp_path):
    path = tmp_path / "p1.jsonl"
    entries = [BEGIN, *(Send(n, n, "t", 0, "kä", n) for n in range(4))]
    write(path, entries)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        reader = JournalReader(path)
        kept = list(reader)
        lines = content[:length].count(b"\n")
        assert kept == entries[:lines]
        assert not reader.state.ended_properly
        assert reader.state.unfinished == (not content[:length].endswith(b"\n") and length > 0)
        assert not reader.state.damaged


def test_damage_in_the_middle_is_counted(tmp_path):
    path = tmp_path / "p1.jsonl"
    write(path, [BEGIN, Send(0, 0, "t", 0, None, 0), Send(1, 1, "t", 0, None, 1)])
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1][:-4] + b"xxxx"
    path.write_bytes(b"\n".join(lines))
    reader = JournalReader(path)
    assert list(reader) == [BEGIN, Send(1, 1, "t", 0, None, 1)]
    assert reader.state.damaged == 1
    assert not reader.state.ended_properly


def test_lost_line_is_detected_by_the_count(tmp_path):
    path = tmp_path / "p1.jsonl"
    write(path, [BEGIN, Send(0, 0, "t", 0, None, 0)])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    reader = JournalReader(path)
    assert list(reader) == [BEGIN]
    assert not reader.state.ended_properly


def test_exception_leaves_no_end_in_the_journal(tmp_path):
    path = tmp_path / "p1.jsonl"

    def crash():
        with JournalWriter(path) as journal:
            journal.write(BEGIN)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        crash()
    reader = JournalReader(path)
    assert list(reader) == [BEGIN]
    assert not reader.state.ended_properly


def test_threads_do_not_mix_their_lines(tmp_path):
    path = tmp_path / "p1.jsonl"
    with JournalWriter(path) as journal:

        def work(base):
            for n in range(500):
                journal.write(Send(base + n, n, "t", 0, "k" * 50, n))

        threads = [threading.Thread(target=work, args=(base,)) for base in (0, 1000, 2000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        journal.end(1)
    reader = JournalReader(path)
    assert sorted(entry.op for entry in reader) == [
        base + n for base in (0, 1000, 2000) for n in range(500)
    ]
    assert reader.state.ended_properly


WRITER = """
import sys
from pathlib import Path
from urteil.harness.evidence.journal import JournalWriter, Send
journal = JournalWriter(Path(sys.argv[1]))
for n in range(10**9):
    journal.write(Send(n, n, "t", 0, "k", n))
    if n == 1000:
        print("enough", flush=True)
"""


def test_sigkill_loses_nothing_that_was_written(tmp_path):
    path = tmp_path / "p1.jsonl"
    with subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"enough\n"
        os.kill(writer.pid, signal.SIGKILL)
    reader = JournalReader(path)
    ops = [entry.op for entry in reader]
    assert ops == list(range(len(ops)))
    assert len(ops) > 1000
    assert not reader.state.ended_properly
    assert reader.state.damaged == 0
