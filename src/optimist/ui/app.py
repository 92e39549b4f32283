"""The pages as a Starlette application: routes, templates and live updates."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

import optimist
from optimist.errors import OptimistError
from optimist.report.formatting import counted
from optimist.ui import drawing
from optimist.ui.curves import View, colors, figures, short_metric
from optimist.ui.folders import RunInfo, RunsFolder
from optimist.ui.security import COOKIE, HEADERS, LOGIN, Guard, GuardMiddleware

VIEWS: Final = {"runs": "Runs", "memory": "Memory", "cage2": "CAGE 2", "report": "Report"}
COLUMNS: Final = {
    "name": ("Run", "l"), "status": ("Status", "l c2"), "share": ("Progress", "l"), "rate": ("Steps/s", "c2 c3"),
    "left": ("Left", "c1"), "spark": ("Return", "l"), "value": ("Now", ""), "method": ("Method", "l c2"),
    "env": ("Environment", "l c2 c3"), "seed": ("Seed", "c2 c3"),
}  # fmt: skip
STATUS_ORDER: Final = ("running", "failed", "broken", "stopped", "finished")
STATUSES: Final = {"": "All", "running": "Running", "finished": "Finished", "other": "Other"}
MOST_SELECTED: Final = 250
MOST_ROWS: Final = 150
"""Rows of the table; a filter shows the others."""
UPDATE_SECONDS: Final = 1.0
STATIC: Final = {
    "ui.css": ("optimist.ui", "static/ui.css"),
    "ui.js": ("optimist.ui", "static/ui.js"),
    "icon.svg": ("optimist.ui", "static/icon.svg"),
    "style.css": ("optimist.report", "templates/style.css"),
    "uplot.min.js": ("optimist.ui", "static/vendor/uplot.min.js"),
    "uplot.min.css": ("optimist.ui", "static/vendor/uplot.min.css"),
    "htmx.min.js": ("optimist.ui", "static/vendor/htmx.min.js"),
    "replay.js": ("cage2", "page/replay.js"),
    "replay.css": ("cage2", "page/replay.css"),
}
"""Name in an address → package and file."""
TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

Query = Mapping[str, str]


class Site:
    """The runs folder, the guard and the templates behind all pages."""

    def __init__(self, folder: RunsFolder, guard: Guard, *, control: bool = False) -> None:
        self.folder, self.guard, self.control = folder, guard, control
        self.templates = Environment(
            loader=PackageLoader("optimist.ui"),
            autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self.templates.globals |= {
            "views": VIEWS, "counted": counted, "version": optimist.__version__, "control": control,
            "form_token": guard.form_token, "link": link, "number": drawing.figure_text, "axis": drawing.axis_text,
            "duration": drawing.duration, "spark_path": drawing.spark_path, "short_metric": short_metric,
            "asset": asset, "signed": partial(drawing.figure_text, signed=True),
        }  # fmt: skip

    def page(self, template: str, request: Request, status: int = 200, **values: Any) -> HTMLResponse:
        """A filled template; `partial` is true for a part of a page that htmx asked for."""
        partial = request.headers.get("hx-request") == "true"
        text = self.templates.get_template(template).render(request=request, partial=partial, **values)
        return HTMLResponse(text, status)

    def notice(self, request: Request, name: str, text: str, status: int = 200, view: str = "") -> HTMLResponse:
        """A page, or a part of one, with one notice."""
        return self.page("notice.html", request, status, title=name, text=text, view=view)


def link(path: str, *sources: Query, **changes: Any) -> str:
    """An address with the parameters of others and these; None and empty values are left out."""
    values = {key: value for source in sources for key, value in source.items()} | changes
    query = urlencode({key: value for key, value in values.items() if value not in (None, "", False)})
    return f"{path}?{query}" if query else path


def asset(name: str) -> str:
    """The address of a static file, with its hash: a new version is loaded again."""
    return f"/static/{name}?v={_asset(name)[1]}"


def make_app(folder: RunsFolder, guard: Guard, *, control: bool = False) -> Starlette:
    """The application for a runs folder."""
    from optimist.ui import cage2, memory, reports
    from optimist.ui.control import Control

    site = Site(folder, guard, control=control)
    site.templates.globals["interval"] = reports.interval_text
    controller = Control(site)
    page = _pages(site)
    routes = [
        Route("/", lambda request: RedirectResponse("/runs")),
        Route(LOGIN, _login(site), methods=["GET", "POST"]),
        Route("/static/{name}", _static),
        Route("/runs", page(runs_page)),
        Route("/runs/table", page(runs_table)),
        Route("/runs/curves", page(runs_curves)),
        Route("/runs/events", _events(site)),
        Route("/memory", page(memory.memory_page)),
        Route("/memory/news", page(memory.memory_news)),
        Route("/memory/film", page(memory.memory_film)),
        Route("/cage2", page(cage2.cage2_page)),
        Route("/report", page(reports.report_page)),
        Route("/report/make", page(reports.report_make), methods=["POST"]),
        Route("/report/made", page(reports.report_made)),
        Route("/report/file", page(reports.report_file)),
        *([Route(f"/runs/{verb}", page(action), methods=["POST"]) for verb, action in controller.posts.items()]),
        Route("/runs/new", page(controller.form)),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(GuardMiddleware, guard=guard)],
        exception_handlers={404: _not_found(site), 500: _failed(site)},
    )
    app.state.reports = reports.Reports(site)
    return app


# -- runs


def runs_page(site: Site, request: Request) -> Response:
    """The view Runs: curves, and the table."""
    query, runs = request.query_params, site.folder.scan()
    metrics = sorted({metric for run in runs for metric in run.metrics}, key=_metric_order)
    chosen = selected(runs, query)
    return site.page(
        "runs.html", request, view="runs", metrics=metrics, chosen=chosen, counts=_counts(runs),
        **_table(runs, query),
    )  # fmt: skip


def runs_table(site: Site, request: Request) -> Response:
    """The table alone, sorted and filtered."""
    runs = site.folder.scan()
    return site.page("table.html", request, counts=_counts(runs), **_table(runs, request.query_params))


def runs_curves(site: Site, request: Request) -> Response:
    """The figures of the selected runs."""
    query, runs = request.query_params, site.folder.scan()
    xaxis = query.get("xaxis", "steps")
    view = View(
        query.get("metric") or View.metric,
        xaxis if xaxis in ("steps", "frames", "time") else "steps",  # type: ignore[arg-type]
        query.get("range") == "half",
        min(max(_whole(query.get("smooth"), 0), 0), 50),
    )
    found = figures(selected(runs, query), view, colors(runs))
    return JSONResponse({"figures": found, "running": any(run.status == "running" for run in runs)})


def selected(runs: Sequence[RunInfo], query: Query) -> list[RunInfo]:
    """The runs that the address names; without names all run folders, or all rows where there are none."""
    names = query.get("runs")
    if names is not None:
        wanted = set(names.split(","))
        return [run for run in runs if run.name in wanted]
    folders = [run for run in runs if run.is_folder and run.status != "broken"]
    return (folders or [run for run in runs if run.spark])[:MOST_SELECTED]


def _table(runs: Sequence[RunInfo], query: Query) -> dict[str, Any]:
    """The rows that the filter leaves, in the order of the chosen column."""
    words, status = query.get("filter", "").lower().split(), query.get("status", "")
    rows = [run for run in runs if _matches(run, words, status)]
    column, _, direction = query.get("sort", "status").partition(" ")
    if column not in COLUMNS:
        column = "status"
    rows.sort(key=lambda run: _sort_key(run, column), reverse=direction == "down")
    return {
        "rows": rows[:MOST_ROWS], "hidden": max(len(rows) - MOST_ROWS, 0), "columns": COLUMNS, "statuses": STATUSES,
        "sort": column, "down": direction == "down", "palette": colors(runs), "query": dict(query),
        "chosen_names": {run.name for run in selected(runs, query)}, "any_run": bool(runs),
    }  # fmt: skip


def _matches(run: RunInfo, words: Sequence[str], status: str) -> bool:
    text = f"{run.name} {run.method} {run.env} {run.family} seed {run.seed} {run.status}".lower()
    other = run.status not in ("running", "finished")
    fits = other if status == "other" else status in ("", run.status)
    return fits and all(word in text for word in words)


def _sort_key(run: RunInfo, column: str) -> Any:
    if column == "status":
        return STATUS_ORDER.index(run.status)
    value = getattr(run, "value" if column == "spark" else column)
    return value.lower() if isinstance(value, str) else float("-inf") if value is None else value


def _counts(runs: Sequence[RunInfo]) -> str:
    words = [counted(len(runs), "run") + " in the folder"]
    for status in STATUS_ORDER:
        number = sum(run.status == status for run in runs)
        if number:
            words.append(f"{number:,} {status}")
    return f"{words[0]} · {', '.join(words[1:])}" if words[1:] else words[0]


def _metric_order(metric: str) -> tuple[bool, str]:
    return not metric.startswith(("rollout/", "evaluation/")), metric


def _whole(text: str | None, default: int) -> int:
    try:
        return int(text) if text else default
    except ValueError:
        return default


# -- live updates


def _events(site: Site) -> Callable[[Request], Any]:
    """Server-sent events: `runs` whenever a run changed, with the number of running ones."""

    async def events(request: Request) -> Response:
        async def stream() -> AsyncIterator[str]:
            last, quiet = "", 0
            yield "retry: 5000\n\n"
            while not await request.is_disconnected():
                runs = await run_in_threadpool(site.folder.scan)
                state = hashlib.sha256(repr([(r.name, r.status, r.steps, r.note) for r in runs]).encode()).hexdigest()
                quiet += 1
                if state != last or quiet >= 15:
                    running = sum(run.status == "running" for run in runs)
                    yield f"event: runs\ndata: {json.dumps({'running': running, 'changed': state != last})}\n\n"
                    last, quiet = state, 0
                await asyncio.sleep(UPDATE_SECONDS)

        return StreamingResponse(stream(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    return events


# -- serving


def _pages(site: Site) -> Callable[[Callable[[Site, Request], Response]], Callable[[Request], Any]]:
    """Make an endpoint of a function of the site, with errors as one notice."""

    def wrap(function: Callable[[Site, Request], Response]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            if request.method == "POST":
                request.state.form = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
            view = request.url.path.split("/")[1]
            try:
                return await run_in_threadpool(function, site, request)
            except _user_errors() as error:
                return site.notice(request, "This cannot be shown.", " ".join(str(error).split()), 404, view=view)
            except FileNotFoundError as error:
                what = f"{Path(str(error.filename)).name} was deleted while this page was open."
                return site.notice(request, "Not found.", what, 404, view=view)

        return endpoint

    return wrap


def _user_errors() -> tuple[type[Exception], ...]:
    try:
        from cage2.errors import Cage2Error
    except ImportError:
        return (OptimistError,)
    return OptimistError, Cage2Error


def _login(site: Site) -> Callable[[Request], Any]:
    async def login(request: Request) -> Response:
        if request.method == "GET":
            return site.page("login.html", request, view="", wrong=False)
        token = dict(parse_qsl((await request.body()).decode("utf-8", "replace"))).get("token", "")
        if not site.guard.accepts(token):
            return site.page("login.html", request, 401, view="", wrong=True)
        answer = RedirectResponse("/runs", 303)
        answer.set_cookie(COOKIE, token, httponly=True, samesite="strict")
        return answer

    return login


_ASSETS: dict[str, tuple[bytes, str]] = {}


def _asset(name: str) -> tuple[bytes, str]:
    """A static file and the start of its hash."""
    if name not in _ASSETS:
        package, file = STATIC[name]
        content = resources.files(package).joinpath(file).read_bytes()
        _ASSETS[name] = content, hashlib.sha256(content).hexdigest()[:12]
    return _ASSETS[name]


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        return Response("Not found.\n", 404, media_type="text/plain")
    content, version = _asset(name)
    caching = "max-age=31536000, immutable" if request.query_params.get("v") == version else "no-cache"
    return Response(content, media_type=TYPES[name.rpartition(".")[2]], headers={"cache-control": caching})


def _not_found(site: Site) -> Callable[[Request, Exception], Any]:
    async def answer(request: Request, error: Exception) -> Response:
        return site.notice(request, "Not found.", "There is no page at this address.", 404)

    return answer


def _failed(site: Site) -> Callable[[Request, Exception], Any]:
    async def answer(request: Request, error: Exception) -> Response:
        what = f"The server failed ({type(error).__name__}); the terminal shows why. Reload the page."
        page = site.notice(request, "Something went wrong.", what, 500)
        page.headers.update(HEADERS)
        return page

    return answer
