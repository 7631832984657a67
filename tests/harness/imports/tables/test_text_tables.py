"""Histories in CSV and JSON as other tools write them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from urteil.harness.imports.tables.importer import MOST, load
from urteil.harness.imports.tables.text_tables import TablesError
from urteil.harness.verify.judgement import judge_run
from urteil.harness.verify.result import Result, Verdict

SENDS = ["client,topic,partition,offset,value_id,outcome,invoke_ns,complete_ns"]
SENDS += [f"p,t,0,{n},p/{n},ok,{1000 + n},{1002 + n}" for n in range(6)]
READS = ["client,topic,partition,offset,value_id,read_ns"]
READS += [f"c,t,0,{n},p/{n},{2000 + n}" for n in range(6)]


def judged(folder: Path, **files: str | bytes) -> Result:
    """`sends_csv` is the file sends.csv."""
    (folder / "in").mkdir()
    for name, text in files.items():
        content = text if isinstance(text, bytes) else text.encode()
        (folder / "in" / name.replace("_", ".")).write_bytes(content)
    settings = {"isolation": "read_uncommitted", "command": ""}
    load(folder / "in", folder / "run", acks=-1, idempotent=True, **settings)
    return judge_run(folder / "run", engine="duckdb", master=None, session=None, canary=False)


def text(lines: list[str], end: str = "\n") -> str:
    return "".join(f"{line}{end}" for line in lines)


def objects(lines: list[str]) -> list[dict[str, str]]:
    names, *rows = (line.split(",") for line in lines)
    return [dict(zip(names, row, strict=True)) for row in rows]


def by_the_hour(lines: list[str]) -> str:
    """With times by ISO 8601, and columns by names in capitals, and one more."""
    names, *rows = lines
    cells = [row.split(",") for row in rows]
    turned = [",".join(f"1970-01-01T00:00:00.{int(cell):09d}Z" if len(cell) == 4 else cell
                       for cell in row) for row in cells]  # fmt: skip
    return text([f"{names.upper()},Comment", *(f'{row},"well, ""yes"""' for row in turned)])


@pytest.mark.parametrize(
    "files",
    [
        {"sends_csv": text(SENDS), "reads_csv": text(READS)},
        {
            "sends_csv": b"\xef\xbb\xbf" + text(SENDS, "\r\n").encode(),
            "reads_csv_gz": gzip.compress(text(READS).replace(",", ";").encode()),
        },
        {
            "sends_json": json.dumps(objects(SENDS)),
            "reads_jsonl": "\n".join(map(json.dumps, objects(READS))),
        },
        {"sends_csv": by_the_hour(SENDS).replace("ok", "OK"), "reads_csv": by_the_hour(READS)},
        {
            "sends_csv": text(SENDS).replace(",0,", ",0.0,"),
            "reads_jsonl": "\r\n".join(
                json.dumps(row | {"note": "a\u2028b"}, ensure_ascii=False) for row in objects(READS)
            ),
        },
    ],
    ids=["csv", "marks and packed", "json", "times and words", "numbers with points, separators"],
)
def test_a_history_as_text_is_judged(files: dict[str, str | bytes], tmp_path: Path) -> None:
    result = judged(tmp_path, **files)
    assert (result.verdict, result.reasons) == (Verdict.PASS, [])


def test_record_missing_in_a_csv_is_lost(tmp_path: Path) -> None:
    result = judged(tmp_path, sends_csv=text(SENDS), reads_csv=text(READS[:3] + READS[4:]))
    assert result.reasons[0].startswith("lost_write: 1 violation: p/2 ")


@pytest.mark.parametrize(
    ("sends", "message"),
    [
        ("", "sends.csv is empty: its first line is to name the columns"),
        (text(["client,client", "a,b"]), "sends.csv: it has a column twice (client, client)"),
        (text(SENDS[:1]).replace("outcome", "out"), "sends.csv: sends has no outcome"),
        (text([*SENDS, "p,t"]), "sends.csv, row 7: 2 cells, the header names 8 columns"),
        (text([*SENDS[:1], "p,t,x,0,v,ok,1,2"]), "sends.csv, row 1: partition is 'x', should be i"),
        (text([*SENDS[:1], f"p,t,0,{10**30},v,ok,1,2"]), "sends.csv, row 1: offset is '1000"),
        (text([*SENDS[:1], "p,t,0,0,v,ok,noon,2"]), "should be int64, or a time by ISO 8601"),
        (b"\xff\xfe", "sends.csv cannot be read as UTF-8 text"),
    ],
)
def test_unreadable_text_is_reported_with_its_place(
    sends: str | bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(TablesError) as raised:
        judged(tmp_path, sends_csv=sends, reads_csv=text(READS))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("sends", "reads"), [(SENDS[:1], READS[:1]), ([*SENDS[:1], f"p,t,0,{MOST},v,ok,1,2"], READS)]
)
def test_odd_tables_are_imported(sends: list[str], reads: list[str], tmp_path: Path) -> None:
    """Without any row, and with the largest offset."""
    (tmp_path / "sends.csv").write_text(text(sends))
    (tmp_path / "reads.csv").write_text(text(reads).replace(",0,5,", f",0,{MOST},"))
    settings = {"isolation": "read_uncommitted", "command": ""}
    rows = load(tmp_path, tmp_path / "run", acks=-1, idempotent=True, **settings)
    assert rows == len(sends) + len(reads) - 2


def test_invalid_json_line_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TablesError, match=r"sends.jsonl, line 2: it is not JSON"):
        judged(tmp_path, sends_jsonl='{"client": "p"}\n{"client": ', reads_csv=text(READS))


def test_too_deep_json_is_not_reported_as_empty(tmp_path: Path) -> None:
    deep = '{"client": "p"}\n' + "[" * 100_000
    with pytest.raises(TablesError, match=r"sends.jsonl, line 2: it is not JSON"):
        judged(tmp_path, sends_jsonl=deep, reads_csv=text(READS))
