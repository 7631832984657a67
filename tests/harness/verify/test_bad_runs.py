"""Evidence that cannot be read is UNKNOWN with its reason, a folder that is no run wrong usage."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.verify.made import ONE, healthy
from urteil.cli.main import EXIT_WRONG_USAGE, exit_code
from urteil.harness.verify import evidence, judge, synthetic
from urteil.harness.verify.result import Verdict, load_result

READS = Path("evidence/reads/part-0.parquet")
WIDER = {pa.int32(): pa.int64()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    synthetic.write_run(folder, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    return folder


@pytest.fixture
def run_dir(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def _cut(part: Path) -> None:
    part.write_bytes(part.read_bytes()[:500])


def _empty(part: Path) -> None:
    part.write_bytes(b"")


def _without_offset(part: Path) -> None:
    pq.write_table(pq.read_table(part).drop_columns(["offset"]), part)


def _other_bytes(part: Path) -> None:
    data = bytearray(part.read_bytes())
    data[200:2000] = bytes(byte ^ 0x5A for byte in data[200:2000])
    part.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (_cut, f"{READS} is no whole Parquet file"),
        (_empty, f"{READS} is no whole Parquet file"),
        (_without_offset, f"{READS} has no offset"),
        (_other_bytes, "the evidence cannot be judged: "),
    ],
)
def test_evidence_that_cannot_be_read_is_unknown(
    run_dir: Path, damage: Callable[[Path], None], reason: str
) -> None:
    damage(run_dir / READS)
    result = judge(run_dir, engine="duckdb")
    assert (result.verdict, result.guarantees) == (Verdict.UNKNOWN, [])
    assert result.reasons[0].startswith(reason)
    assert load_result(run_dir).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("name", ["scenario.json", "run.json"])
def test_a_folder_that_is_no_run_is_wrong_usage(
    run_dir: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_dir / name).write_text('{"run": ')
    assert exit_code(["verify", str(run_dir), "--engine", "duckdb"]) == EXIT_WRONG_USAGE
    said = capsys.readouterr().err
    assert f"run/{name} cannot be read" in said
    assert "play the run again" in said


def test_wider_integers_are_no_flaw(run_dir: Path) -> None:
    narrow = pq.read_table(run_dir / READS)
    wide = pa.schema([pa.field(f.name, WIDER.get(f.type, f.type)) for f in narrow.schema])
    pq.write_table(narrow.cast(wide), run_dir / READS)
    assert evidence.flaws(run_dir) == []
