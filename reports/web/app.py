"""The pages of the web view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
from bokeh.embed import components
from bokeh.models import AjaxDataSource, HoverTool
from bokeh.resources import Resources
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
)
from starlette.routing import Route

from urteil.harness.hunt.matrix import Matrix
from urteil.reports.compare import compare
from urteil.reports.matrix import matrix_page
from urteil.reports.page import page_of
from urteil.reports.palette import OUTCOMES
from urteil.reports.run_loading import LoadedRun, load_run
from urteil.reports.run_progress import KINDS, progress
from urteil.reports.run_store import ListedRun, NotStored, Store
from urteil.reports.template import environment
from urteil.reports.timeline_plots import NAMES, blank_figure, legend
from urteil.reports.trends import trend
from urteil.reports.web.access import Guard

SHOWN = 200
POLLED_MS = 1_000
TEXTS = ("result.json", "junit.xml", "schedule.json", "scenario.json", "run.json", "faults.jsonl")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
Mutants = Mapping[str, Sequence[str]]


def make_app(
    root: Path, *, mutants: Mapping[str, Sequence[str]] | None = None, token: str | None = None,
    hosts: Sequence[str] = LOOPBACK,
) -> Starlette:  # fmt: skip
    """The web view of the runs below `root`.

    With a `token`, every request must carry it. `hosts` are the accepted host names; empty accepts
    any.
    """
    pages = _Pages(Store(root), mutants or {})
    routes = [
        Route("/", pages.runs),
        Route("/bokeh.js", pages.library),
        Route("/compare", pages.compare),
        Route("/trends", pages.trends),
        Route("/matrix", pages.matrix),
        Route("/live/{name:path}/data", pages.live_data),
        Route("/live/{name:path}/faults", pages.live_faults),
        Route("/live/{name:path}", pages.live_page),
        Route("/run/{name:path}/file/{file:path}", pages.file),
        Route("/run/{name:path}", pages.run),
    ]
    guard = Middleware(Guard, hosts=hosts, token=token)
    return Starlette(
        routes=routes,
        middleware=[guard],
        exception_handlers={NotStored: _no_run, 404: pages.missing_page},
    )


async def _no_run(_request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"404: no run {error} here\n", 404)


class _Pages:
    """One method for each page."""

    def __init__(self, store: Store, mutants: Mutants) -> None:
        self._store = store
        self._mutants = mutants
        self._templates = environment()

    def _render(self, template: str, **shown: Any) -> HTMLResponse:
        return HTMLResponse(self._templates.get_template(f"web/{template}.html.j2").render(**shown))

    def runs(self, request: Request) -> Response:
        """All runs, by filters of the query."""
        runs = self._store.runs()
        filters = {name: request.query_params.get(name, "").strip() for name in FILTERS}
        matching = [run for run in runs if _matches(run, filters)]
        choices = {
            "scenario": sorted({run.scenario for run in runs}),
            "target": sorted({run.summary.target for run in runs if run.summary}),
            "verdict": sorted({run.verdict for run in runs}),
            "guarantee": sorted({name for run in runs for name in run.violations}),
        }
        return self._render("runs", runs=matching[:SHOWN], count=len(matching), filters=filters,
                            choices=choices, live={run.name for run in matching[:SHOWN]
                            if run.summary is None and _lives(run.path)})  # fmt: skip

    def run(self, request: Request) -> Response:
        """The report: the page that was drawn, or one drawn now, without writing it."""
        run = self._store.run(request.path_params["name"])
        page = self._store.resolve_inside(run.path / "report.html")
        if page is not None and page.is_file():
            return FileResponse(page, media_type="text/html")
        return HTMLResponse(page_of(run.path, load_run(run.path), self._mutants))

    def file(self, request: Request) -> Response:
        """One of a run's texts, or a process' log, as plain text."""
        run = self._store.run(request.path_params["name"])
        name = request.path_params["file"]
        log = name.startswith("logs/") and name.endswith(".log") and name.count("/") == 1
        path = self._store.resolve_inside(run.path / name)
        if (name not in TEXTS and not log) or path is None or not path.is_file() \
                or not path.is_relative_to(run.path):  # fmt: skip
            return PlainTextResponse("404: no such file of that run\n", 404)
        return FileResponse(path, media_type="text/plain; charset=utf-8")

    def compare(self, request: Request) -> Response:
        """A comparison of two runs."""
        names = [request.query_params.get(parameter, "") for parameter in ("a", "b")]
        runs = [self._store.run(name) for name in names] if all(names) else []
        lines = compare(runs[0].path, runs[1].path) if runs else []
        lines_by_part = [
            (part, list(of_part)) for part, of_part in groupby(lines, key=attrgetter("part"))
        ]
        return self._render("compare", parts=lines_by_part, names=names,
                            known=[run.name for run in self._store.runs()[:SHOWN]])  # fmt: skip

    def trends(self, request: Request) -> Response:
        """One scenario and target over time."""
        kinds: dict[tuple[str, str], list[ListedRun]] = {}
        for run in self._store.runs():
            if run.summary is not None and run.summary.mutant is None:
                kinds.setdefault((run.scenario, run.summary.target), []).append(run)
        busiest = sorted(kinds, key=lambda kind: (-len(kinds[kind]), kind))
        requested = (request.query_params.get("scenario"), request.query_params.get("target"))
        chosen = next(
            (kind for kind in busiest if kind == requested), busiest[0] if busiest else None
        )
        script, markup = trend(kinds[chosen]) if chosen else ("", "")
        return self._render("trends", kinds=[(*kind, len(kinds[kind])) for kind in busiest],
                            chosen=chosen, script=script, markup=markup)  # fmt: skip

    def matrix(self, _request: Request) -> Response:
        """The newest matrix of mutants x guarantees in the store."""
        matrices = [path for path in self._store.root.glob("*/matrix.json")
                 if self._store.resolve_inside(path) is not None]  # fmt: skip
        for path in sorted(matrices, key=lambda path: path.stat().st_mtime, reverse=True):
            try:
                matrix = msgspec.json.decode(path.read_bytes(), type=Matrix)
            except (OSError, msgspec.MsgspecError):
                continue
            return HTMLResponse(matrix_page(matrix))
        return self._render("nothing", what="No matrix of mutants stands here.",
                            command="urteil mutants")  # fmt: skip

    def missing_page(self, _request: Request, _error: Exception) -> Response:
        """The page for unknown paths."""
        page = self._render("nothing", what="404: there is no such page here.", command="")
        page.status_code = 404
        return page

    def live_page(self, request: Request) -> Response:
        """A run that is under way, with a curve that is updated."""
        run = self._store.run(request.path_params["name"])
        source = AjaxDataSource(data_url=f"/live/{run.name}/data", polling_interval=POLLED_MS,
                                method="GET", mode="replace", data=progress(run.path))  # fmt: skip
        plot = blank_figure("Records a second", 260, tools="xbox_zoom,reset", min_border_left=70)
        for kind in KINDS:
            plot.line("at", kind, source=source, color=OUTCOMES[kind], line_width=2,
                      legend_label=NAMES.get(kind, kind))  # fmt: skip
        legend(plot, "above")
        plot.add_tools(HoverTool(tooltips=[("second", "@at"), *((k, f"@{k}") for k in KINDS)],
                                 mode="vline", renderers=plot.renderers[:1]))  # fmt: skip
        script, markup = components(plot)
        loaded = load_run(run.path)
        return self._render("live", run=run, loaded=loaded, lives=_lives(run.path),
                            faults=_fault_lines(loaded), polled_ms=POLLED_MS, script=script,
                            markup=markup)  # fmt: skip

    def live_data(self, request: Request) -> Response:
        """The columns of that curve."""
        return JSONResponse(progress(self._store.run(request.path_params["name"]).path))

    def live_faults(self, request: Request) -> Response:
        """The faults so far, one line each, and whether the run is under way."""
        run = self._store.run(request.path_params["name"])
        return JSONResponse({"faults": _fault_lines(load_run(run.path)), "lives": _lives(run.path)})

    def library(self, _request: Request) -> Response:
        """Bokeh's script, as in every report."""
        return PlainTextResponse(_library(), media_type="text/javascript")


FILTERS = ("scenario", "target", "verdict", "since", "until", "guarantee")


def _matches(run: ListedRun, filters: Mapping[str, str]) -> bool:
    target = run.summary.target if run.summary else ""
    return all((
        filters["scenario"] in ("", run.scenario),
        filters["target"] in ("", target),
        filters["verdict"] in ("", run.verdict),
        not filters["since"] or run.date[:10] >= filters["since"],
        not filters["until"] or run.date[:10] <= filters["until"],
        filters["guarantee"] == "" or filters["guarantee"] in run.violations,
    ))  # fmt: skip


def _fault_lines(run: LoadedRun) -> list[str]:
    """One line for each fault."""
    lines = [
        f"{fault.fault} on {', '.join(fault.targets)}: {fault.proof}"
        + ("" if fault.healed_ns is not None else " (acts)")
        for fault in run.result.faults
    ]
    return lines or ["none"]


def _lives(run_dir: Path) -> bool:
    """Whether a lab still holds the lock of the run."""
    import fcntl

    try:
        with (run_dir / "lab.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


@lru_cache(maxsize=1)
def _library() -> str:
    return "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)
