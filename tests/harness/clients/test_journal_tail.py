"""Progress follows growing journals."""

from urteil.harness.clients.journal_tail import Tails
from urteil.harness.evidence.journal import Fail, Info, JournalWriter, Ok, Send


def done(kind, op, at_ns, offset=None):
    return kind(op, at_ns, None, 1, False, 0, offset, 1, None, None, None, None)


def test_progress_of_a_growing_journal(tmp_path):
    path = tmp_path / "p1.jsonl"
    tails = Tails([path, tmp_path / "missing.jsonl"])
    assert tails.progress().acked == 0
    with JournalWriter(path) as journal:
        for op in range(5):
            journal.write(Send(op, op, "t", 0, None, 0))
        journal.write(done(Ok, 0, 100, offset=7))
        journal.write(done(Ok, 1, 200, offset=3))
        progress = tails.progress()
        assert (progress.invoked, progress.acked, progress.pending_sends) == (5, 2, 3)
        journal.write(done(Fail, 2, 300))
        journal.write(done(Info, 3, 300))
    progress = tails.progress()
    assert (progress.failed, progress.unknown, progress.pending_sends) == (1, 1, 1)
    assert [tails.acknowledged_since(ns) for ns in (0, 100, 101, 200, 201)] == [2, 2, 1, 1, 0]
    assert tails.acked_ends() == {("t", 0): 8}


def test_incomplete_line_is_not_read(tmp_path):
    path = tmp_path / "p1.jsonl"
    with JournalWriter(path) as journal:
        journal.write(Send(0, 0, "t", 0, None, 0))
        journal.write(done(Ok, 0, 100, offset=7))
    content = path.read_bytes()
    grown = tmp_path / "grown.jsonl"
    tails = Tails([grown])
    counts = []
    for length in range(len(content) + 1):
        grown.write_bytes(content[:length])
        counts.append(tails.progress().acked)
    assert counts == [0] * len(content) + [1]
