"""
make_worker(): the worker for the options of aggregatelogs.

Modules that need the extra "logs" are imported when they are used: so the error of a command without the extra names
it, and --help works without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from django.utils.module_loading import import_string

from components.services.geo import GeoTable, PerhapsTable
from components.services.logs import PLACES, Aggregation
from components.workers.options import WrongUsage

if TYPE_CHECKING:
    from components.services.logs.worker.log_worker import LogWorker


def make_worker(options: Mapping[str, Any]) -> LogWorker:
    """Return a worker with these options. Raises ComponentsError, CommandError."""
    from components.services.logs.lines import LineReader
    from components.services.logs.traffic import Traffic
    from components.services.logs.worker.log_worker import LogWorker

    name = options["aggregation"] or PLACES
    aggregation = Aggregation(name, job=options["job"], lease=options["lease"])
    form, shown = _format(options)
    callbacks, level = _callbacks(options, form)
    return LogWorker(
        aggregation,
        LineReader(form),
        callbacks,
        days=options["days"],
        keep=options["keep"],
        forget=Traffic(options["job"]).forget,
        drains=options["drain"],
        about=(shown, level),
    )


def _format(options: Mapping[str, Any]) -> tuple[Any, str]:
    from components.services.logs.lines import JsonLines, Pattern, find_format

    if options["pattern"] is not None:
        return Pattern(options["pattern"]), options["pattern"]
    if (given := options["json_keys"]) is None:
        return find_format(options["format"]), options["format"]
    names = given.split(",")
    if options["format"] != "json" or not (2 <= len(names) <= len(fields(JsonLines)) and all(names)):
        raise WrongUsage(
            "--json-keys IP,TIME names two keys, or up to six: IP,TIME,STATUS,PATH,REFERRER,AGENT. It needs --format "
            "json."
        )
    return JsonLines(*names), f"json {given}"


def _callbacks(options: Mapping[str, Any], form: Any) -> tuple[list[Callable[[], Any]], str]:
    given = options["callback"]
    if bool(given) != (options["aggregation"] not in (None, PLACES)):
        raise WrongUsage(
            f"--callback needs --aggregation NAME, and that needs --callback; {PLACES!r} counts places."
        )
    if given:
        if options["keep"]:
            raise WrongUsage("--keep is for tables of places, which callbacks do not fill.")
        if options["level"] or options["table"] or options["by"] is not None:
            raise WrongUsage("--by, --level and --table are for places, which callbacks do not count.")
        return [_import(path) for path in given], ", ".join(given)
    from components.services.logs.traffic.place_counter import PlaceCounter

    level, table = options["level"] or "city", options["table"] or "default"
    (GeoTable if options["table"] else PerhapsTable).load(table)
    wanted = None if options["by"] is None else [each for each in options["by"].split(",") if each]
    counter = partial(PlaceCounter, table, level=level, form=form, dimensions=wanted)
    shown = level if wanted is None else f"{level}, by {','.join(wanted) or 'nothing else'}"
    return [counter], shown


def _import(path: str) -> Callable[[], Any]:
    try:
        found = import_string(path)
    except ImportError as error:
        raise WrongUsage(f"--callback {path}: {error}.") from None
    if missing := [name for name in ("block", "flush") if not callable(getattr(found, name, None))]:
        raise WrongUsage(f"--callback {path}: it has no {' and no '.join(missing)}().")
    made: Callable[[], Any] = found
    return made
