"""The lab reads logs beside odd files: all records, and no exception."""

import pytest

from tests.broker.log.odd_files import CASES
from tests.broker.log.test_odd_files import TOPIC, place, whole_log
from urteil.harness.evidence.readers.replica_logs import find_logs, read_log


@pytest.mark.parametrize("magics", [(0, 1, 2), (2,)], ids=["mixed", "newest"])
def test_odd_file_hides_no_record_from_the_lab(tmp_path, magics):
    log = whole_log(*magics)
    for number, case in enumerate(CASES):
        where = place(tmp_path / str(number), log, clean=True)
        case.act(where)
        logs = [log for log in find_logs(1, where.data, {}) if log.topic == TOPIC]
        rows = [row["offset"] for log in logs for row in read_log(log, "r1")]
        offsets = [row.offset for row in log.rows]
        if ".deleted" in case.name and case.left:
            assert set(rows) < set(offsets), case.name  # its other records are in `.swap` files
        else:
            assert rows == offsets, case.name


def test_damaged_epochs_count_as_damaged_evidence(tmp_path):
    where = place(tmp_path, whole_log(2), clean=True)
    (where.folder / "leader-epoch-checkpoint").write_bytes(b"0\n2\n0 0\n\xff x\n")
    (log,) = find_logs(1, where.data, {})
    assert list(read_log(log, "r1"))
    assert log.row["epochs"] == '{"0":0}'
    assert log.damage == ["leader-epoch-checkpoint: the line '\ufffd x' is not an entry"]
