"""A line file is read while it grows, and has every appended line after a crash."""

import subprocess
import sys

import pytest

from urteil.harness.evidence.line_file import ROOM_BYTES, LineFile, read_lines, written_bytes

LINES = [b"a" * length for length in (1, 0, 4095, 4096, 3 * ROOM_BYTES, 7)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lines"


def test_appended_lines_exist_before_and_after_close(path):
    file = LineFile(path)
    for count, line in enumerate(LINES, 1):
        file.append(line)
        assert list(read_lines(path)) == [line + b"\n" for line in LINES[:count]]
        assert written_bytes(path) == sum(len(line) + 1 for line in LINES[:count])
    file.close()
    assert path.read_bytes() == b"".join(line + b"\n" for line in LINES)


def test_reader_continues_at_its_position(path):
    file, read = LineFile(path), b""
    for line in LINES:
        file.append(line)
        new = list(read_lines(path, len(read)))
        assert new == [line + b"\n"]
        read += new[0]
    file.close()
    assert list(read_lines(path, len(read))) == []


def test_incomplete_line_is_not_returned(path):
    for left in (b"[1, 2", b"[1\0\0\0 2]\n", b"\0\0\0"):
        path.write_bytes(b"[0]\n" + left + b"\0" * 5000)
        assert list(read_lines(path)) == [b"[0]\n"]
    assert written_bytes(path) == len(b"[0]\n")


def test_lines_are_appended_to_an_existing_file(path):
    path.write_bytes(b"old\n" + b"\0" * (2 * ROOM_BYTES))
    file = LineFile(path)
    file.append(b"new")
    file.close()
    assert path.read_bytes() == b"old\nnew\n"


def test_file_without_lines_is_empty(path):
    LineFile(path).close()
    assert path.read_bytes() == b""
    assert written_bytes(path) == 0


READ_ALL = """
import sys
from pathlib import Path
from urteil.harness.evidence.line_file import read_lines
path, at, lines = Path(sys.argv[1]), 0, 0
print("reading", flush=True)
while lines < int(sys.argv[2]):
    for line in read_lines(path, at):
        assert line == b"%d" % lines * 9 + b"\\n", (lines, line)
        at, lines = at + len(line), lines + 1
"""


def test_concurrent_reader_gets_complete_lines_in_order(path):
    path.touch()
    count = 100_000
    command = [sys.executable, "-c", READ_ALL, str(path), str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"reading\n"
        file = LineFile(path)
        for n in range(count):
            file.append(b"%d" % n * 9)
        file.close()
    assert reader.returncode == 0


FILL = """
import resource, sys
from pathlib import Path
from urteil.harness.evidence.line_file import LineFile
resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
file, lines = LineFile(Path(sys.argv[1])), 0
try:
    while True:
        file.append(b"x" * 99)
        lines += 1
except OSError as error:
    file.close()
    print(lines, error.strerror)
"""


def test_full_disk_raises_and_loses_no_line(path):
    done = subprocess.run([sys.executable, "-c", FILL, str(path)], capture_output=True, text=True)
    lines, error = done.stdout.split(maxsplit=1)
    assert error == "File too large\n"
    assert path.read_bytes() == (b"x" * 99 + b"\n") * int(lines)
    assert int(lines) > 10_000
