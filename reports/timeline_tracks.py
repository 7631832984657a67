"""Lanes of a run's timeline: partitions, brokers, clients and faults as bands over seconds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from urteil.harness.evidence.node_names import node_name
from urteil.harness.verify.result import FaultResult
from urteil.reports.evidence_views import EvidenceViews
from urteil.reports.time_series import Series

LANES = 40
"""Maximum number of lanes of a track; those with the most bands are kept."""
MARK_WIDTH = 0.003
"""Width of a single message, as a share of the axis."""
BANDS = 3_000
"""Maximum number of bands of a track; the longest are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A stretch of a lane. `shade` names its colour (palette.py), `detail` is its tooltip."""

    lane: str
    begin_s: float
    end_s: float
    shade: str
    text: str = ""
    detail: str = ""
    faint: bool = False
    thin: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """Lanes under one title; `left_out` is what was dropped. `is_first`: above the curves."""

    title: str
    bands: list[Band] = field(default_factory=list)
    left_out: str = ""
    is_first: bool = False


def tracks(run: EvidenceViews, series: Series, faults: Sequence[FaultResult]) -> list[Track]:
    """Every track that has something to show."""
    tracks = [
        replace(
            _fit("Faults, until the cluster was healthy again", _faults(series, faults)),
            is_first=True,
        ),
        replace(
            _fit("Requests and answers on which faults acted", _messages(run, series)),
            is_first=True,
        ),
        _fit(
            "Partitions: leader (colour), ISR (faint: not full)",
            _partitions(run, series),
        ),
        _fit("Brokers: registered, controller (line), faults", _brokers(run, series, faults)),
        _fit("Clients and their sessions", _clients(run, series)),
    ]
    return [track for track in tracks if track.bands]


def _fit(title: str, bands: list[Band]) -> Track:
    """A track with at most LANES lanes and BANDS bands."""
    lanes = list(dict.fromkeys(band.lane for band in bands))
    left_out = []
    if len(lanes) > LANES:
        busy = sorted(lanes, key=lambda lane: -sum(band.lane == lane for band in bands))[:LANES]
        left_out.append(f"{len(lanes) - LANES:,} lanes in which less happened")
        bands = [band for band in bands if band.lane in set(busy)]
    if len(bands) > BANDS:
        left_out.append(f"{len(bands) - BANDS:,} stretches that were shorter")
        longest = sorted(bands, key=lambda band: band.begin_s - band.end_s)[:BANDS]
        bands = sorted(longest, key=lambda band: (band.lane, band.begin_s))
    return Track(title=title, bands=bands, left_out=", ".join(left_out))


def _clip(series: Series, begin_ns: int, end_ns: int | None) -> tuple[float, float]:
    """A stretch clipped to the axis; an open end is the end of the axis."""
    end = series.end_s if end_ns is None else min(series.end_s, series.seconds(end_ns))
    return max(0.0, series.seconds(begin_ns)), end


def _faults(series: Series, faults: Sequence[FaultResult]) -> list[Band]:
    bands = []
    for number, fault in enumerate(faults, 1):
        lane = f"{number}. {fault.fault}"
        healed_ns = fault.healed_ns or fault.end_ns
        begin, end = _clip(series, fault.begin_ns, healed_ns)
        acted = "" if fault.acted else ", left no trace"
        detail = f"{', '.join(fault.targets)}{acted}: {fault.proof}"
        bands.append(
            Band(lane=lane, begin_s=begin, end_s=end, shade="fault", text=_targets_text(fault),
                 detail=detail, faint=not fault.acted)
        )  # fmt: skip
        if fault.recovery_s and end < series.end_s:
            recovered = min(series.end_s, end + fault.recovery_s)
            text = f"healthy {fault.recovery_s:.1f} s after its healing"
            bands.append(
                Band(lane=lane, begin_s=end, end_s=recovered, shade="recovery", detail=text)
            )
    return bands


def _messages(run: EvidenceViews, series: Series) -> list[Band]:
    """A mark for each request or answer; those of one fault and API share a lane."""
    rows = run.rows(
        "SELECT at_ns, fault, link, direction, api, version, correlation_id, client_id, act, "
        "detail FROM link_events ORDER BY at_ns"
    )
    width_s = MARK_WIDTH * series.end_s
    bands = []
    for at_ns, fault, link, direction, api, version, correlation_id, client, act, detail in rows:
        at_s = series.seconds(at_ns)
        if not 0 <= at_s <= series.end_s:
            continue
        text = f"{act}: {direction} {api} v{version}, id {correlation_id} of {client}, on {link}"
        bands.append(
            Band(
                lane=f"{fault} {api}",
                begin_s=at_s,
                end_s=min(series.end_s, at_s + width_s),
                shade="message",
                detail=f"{text}{f': {detail}' if detail else ''}",
            )
        )
    return bands


def _targets_text(fault: FaultResult) -> str:
    shown = ", ".join(fault.targets[:3])
    return shown + (f" and {len(fault.targets) - 3} more" if len(fault.targets) > 3 else "")


def _partitions(run: EvidenceViews, series: Series) -> list[Band]:
    rows = run.rows(
        "SELECT topic, partition, at_ns, leader, leader_epoch, isr, "
        "lead(at_ns) OVER (PARTITION BY topic_id, topic, partition ORDER BY zxid) AS until_ns "
        "FROM states WHERE partition IS NOT NULL AND isr IS NOT NULL AND (topic IN "
        "(SELECT DISTINCT topic FROM sends) OR (SELECT count(*) FROM sends) = 0) "
        "ORDER BY topic, partition, zxid"
    )
    widest: dict[str, int] = {}
    for topic, partition, _, _, _, isr, _ in rows:
        lane = f"{topic}-{partition}"
        widest[lane] = max(widest.get(lane, 0), len(_read_brokers(isr)))
    bands = []
    for topic, partition, at_ns, leader, epoch, isr_json, until_ns in rows:
        lane, isr = f"{topic}-{partition}", _read_brokers(isr_json)
        begin, end = _clip(series, at_ns, until_ns)
        if end <= begin:
            continue
        led = "no leader" if leader is None or leader < 0 else f"b{leader}"
        members = ",".join(map(str, isr))
        bands.append(
            Band(lane=lane, begin_s=begin, end_s=end,
                 shade="none" if led == "no leader" else f"broker {leader}",
                 text=f"{led}  isr {members}", faint=len(isr) < widest[lane],
                 detail=f"leader {led}, epoch {epoch}, ISR {members or 'nobody'}"
                 f"{_mark(series, lane, end)}")
        )  # fmt: skip
    return bands


def _mark(series: Series, lane: str, at_s: float) -> str:
    """A lower bound of the high watermark, from what was acknowledged by then."""
    ends = series.acknowledged.get(lane)
    if not ends:
        return ""
    end = ends[min(len(ends) - 1, int(at_s / series.bucket_s))]
    return f", high watermark at its end at least {end:,.0f}"


def _brokers(run: EvidenceViews, series: Series, faults: Sequence[FaultResult]) -> list[Band]:
    """Bands of registration, controllership and faults, on one lane for each broker, and for each
    controller of its own that was active."""
    rows = run.rows(
        "SELECT CAST(regexp_extract(path, '/brokers/ids/([0-9]+)$', 1) AS INTEGER) AS broker, "
        "at_ns, version < 0, lead(at_ns) OVER (PARTITION BY path ORDER BY zxid) FROM states "
        "WHERE regexp_matches(path, '/brokers/ids/[0-9]+$') ORDER BY broker, zxid"
    )
    bands = []
    for broker, at_ns, gone, until_ns in rows:
        begin, end = _clip(series, at_ns, until_ns)
        if end > begin:
            bands.append(
                Band(lane=f"b{broker}", begin_s=begin, end_s=end, shade="gone" if gone else "up",
                     detail="not registered in ZooKeeper" if gone else "registered: up")
            )  # fmt: skip
    bands += _controllers(run, series)
    lanes = {band.lane for band in bands}
    return bands + list(_fault_bands(series, faults, lanes))


def _controllers(run: EvidenceViews, series: Series) -> Iterator[Band]:
    rows = run.rows(
        "SELECT controller, at_ns FROM states WHERE path LIKE '%/controller' ORDER BY zxid"
    )
    for (controller, at_ns), (_, until_ns) in pairwise([*rows, (None, None)]):
        if controller is not None and controller >= 0:
            begin, end = _clip(series, at_ns, until_ns)
            if end > begin:
                yield Band(lane=node_name(controller), begin_s=begin, end_s=end, shade="controller",
                           detail="controller", thin=True)  # fmt: skip


def _fault_bands(series: Series, faults: Sequence[FaultResult], lanes: set[str]) -> Iterator[Band]:
    for fault in faults:
        begin, end = _clip(series, fault.begin_ns, fault.healed_ns or fault.end_ns)
        ends = {name for target in fault.targets for name in target.split("->")}
        for broker in sorted(ends & lanes):
            itself = broker in fault.targets
            detail = f"{fault.fault} on {', '.join(fault.targets)}"
            yield Band(lane=broker, begin_s=begin, end_s=end, shade="fault", detail=detail,
                       text=fault.fault if itself else f"{fault.fault} (links)",
                       faint=not itself)  # fmt: skip


def _clients(run: EvidenceViews, series: Series) -> list[Band]:
    rows = run.rows(
        "SELECT client, session, kind, library, version, acks, begin_ns, end_ns FROM clients "
        "WHERE begin_ns IS NOT NULL ORDER BY client, session"
    )
    bands = []
    for client, session, kind, library, version, acks, begin_ns, end_ns in rows:
        begin, end = _clip(series, begin_ns, end_ns)
        if end <= begin:
            continue
        facts: list[Any] = [kind, f"session {session}", " ".join(filter(None, (library, version)))]
        facts += [] if acks is None else [f"acks={'all' if acks == -1 else acks}"]
        facts += [] if end_ns is not None else ["its end was not recorded"]
        detail = ", ".join(str(fact) for fact in facts if fact)
        bands.append(
            Band(lane=client, begin_s=begin, end_s=end, shade=f"client {kind}", detail=detail,
                 text=str(kind or ""), faint=end_ns is None)
        )  # fmt: skip
    return bands


def _read_brokers(text: str | None) -> list[int]:
    """The brokers of a JSON list; none where it is damaged."""
    try:
        numbers = json.loads(text or "[]")
        return [int(number) for number in numbers]
    except (ValueError, TypeError):
        return []
