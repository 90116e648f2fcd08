"""
Every page of the control room, on a site with a great deal of everything: how long the server takes, how long the
page is, and what it asks of Redis.

Pages are asked for in this process by Django's test client, as a member of the staff: sessions, permissions, views
and templates, as HTML without files. A page that a service adds is measured as well, because the list comes from the
admin site. MONITOR watches while all pages are opened once: none may send KEYS or SCAN.
"""

from __future__ import annotations

import gzip
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, reverse

from benchmarks import full_site
from benchmarks.harness import Bench, Crew, Turn, say
from benchmarks.report import at_most, none, print_bars, print_table
from components.models import Queue

SLOWEST = 100.0  # milliseconds on the server
LARGEST = 100.0  # kilobytes, compressed
WARM_UP, TURNS = 3, 15
#: They look at every key of a server, or at every member of one.
LISTING = ("KEYS", "SCAN")
COLUMNS = (
    ("ms", "ms", ".1f", 1),
    ("site CPU ms", "client", ".1f", 1e-3),
    ("Redis CPU ms", "redis", ".1f", 1e-3),
    ("KB", "plain", ",.0f", 1),
    ("compressed", "sent", ".1f", 1),
    ("commands", "commands", ",.0f", 1),
    ("round trips", "reads", ".0f", 1),
)
#: Pages about nothing that is stored: Django's own of the log of changes, and where those lead.
LEFT_OUT = ("_jsi18n", "_history", "_change")
#: What single pages are asked beyond the names.
ALONE: dict[str, dict[str, Any]] = {
    "queue cancel": {"state": "ready"},
    "counter time": {"name": f"{full_site.JOBS[0]}_1"},
}
#: Beside each page as its link opens it: pages that have more to do.
MORE: list[tuple[str, str, Mapping[str, Any]]] = [
    ("queue changelist", "the last page", {"p": 99}),
    ("queue tasks", "ready", {"state": "ready"}),
    ("queue tasks", "delayed", {"state": "delayed"}),
    ("queue tasks", "running", {"state": "running"}),
    ("queue tasks", "successful", {"state": "successful"}),
    ("queue tasks", "ready, far away", {"state": "ready", "offset": 100_000}),
    ("queue tasks", "ready, a search that finds nothing", {"state": "ready", "q": "no task has it"}),
    ("queue tasks", "dead, a search", {"q": "KeyError"}),
    ("queue failures", "of all queues", {"queue": ""}),
    ("counter chart", "a whole family", {"counter": "", "family": "shop1"}),
    ("logjob traffic", "a region's cities", {"level": "city", "within": "C1"}),
]


def run(bench: Bench, crew: Crew, options: Namespace) -> None:
    call_command("migrate", verbosity=0)
    began = time.monotonic()
    names = full_site.fill(options)
    keys, used = bench.redis.dbsize(), bench.memory() / 1e6
    print(f"Filled in {time.monotonic() - began:.0f} s: {keys:,} keys, {used:,.0f} MB of Redis.")
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("staff"))
    addresses = {what: (url, {**names, **query}) for what, url, query in addresses_of(names)}
    measured = {}
    for what, (url, query) in addresses.items():
        say(f"measuring: {what}")
        measured[what] = measure(bench, client, url, query)
    say("")
    report(measured, watch(bench, client, addresses))


def addresses_of(names: Mapping[str, str]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield each page of the control room with its address, and what it is asked beyond the names."""
    found = {"index": reverse("admin:index"), "app index": reverse("admin:app_list", args=["components"])}
    for model, pages in admin.site._registry.items():
        if model._meta.app_label != Queue._meta.app_label:
            continue
        for pattern in pages.get_urls():
            if isinstance(pattern, URLPattern) and pattern.name and not pattern.name.endswith(LEFT_OUT):
                what = pattern.name.removeprefix("components_").replace("_", " ", 1)
                found[what] = reverse(f"admin:{pattern.name}")
    for what, url in found.items():
        yield (
            what,
            url,
            ALONE.get(what, {}) | ({"id": names[full_site.READY]} if what == "queue cancel" else {}),
        )
        for page, more, query in MORE:
            if page == what:
                yield f"{what}: {more}", url, query


def measure(bench: Bench, client: Client, url: str, query: Mapping[str, Any]) -> Turn:
    """Measure a page that was opened before, so that its templates are compiled."""
    for _ in range(WARM_UP):
        response = ask(client, url, query)
    if response.status_code != 200:
        return {"status": response.status_code}
    times = list[float]()
    with bench.cost(TURNS) as turn:
        for _ in range(TURNS):
            began = time.perf_counter()
            response = ask(client, url, query)
            times.append((time.perf_counter() - began) * 1e3)
    turn |= {"status": 200, "ms": median(times), "busy": (turn["client"] + turn["redis"]) / 1e3}
    return turn | {"plain": len(response.content) / 1e3, "sent": len(gzip.compress(response.content)) / 1e3}


def ask(client: Client, url: str, query: Mapping[str, Any]) -> HttpResponse:
    response: Any = client.get(url, query)
    return HttpResponse(b"".join(response)) if response.streaming else response


def watch(
    bench: Bench, client: Client, addresses: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> Mapping[str, list[str]]:
    """Open each page once beside MONITOR; return the commands that list keys, by page, and count all commands."""
    found: dict[str, list[str]] = {}
    seen = 0
    with bench.redis.monitor() as monitor:
        for what, (url, query) in addresses.items():
            say(f"watching: {what}")
            ask(client, url, query)
            bench.redis.echo(what)
            for each in iter(monitor.next_command, None):
                command = each["command"].split(" ", 1)
                if command == ["ECHO", what]:
                    break
                seen += 1
                if command[0].upper() in LISTING:
                    found.setdefault(what, []).append(each["command"])
    say("")
    print(
        f"\nMONITOR has seen {seen:,} commands while {len(addresses)} pages were opened, scripts' own included."
    )
    return found


def report(measured: Mapping[str, Turn], listing: Mapping[str, list[str]]) -> None:
    good = {what: turn for what, turn in measured.items() if turn["status"] == 200}
    slowest_first = sorted(good.items(), key=lambda each: -each[1]["ms"])
    print_table(
        ["page", *(head for head, *_ in COLUMNS)],
        (
            [what, *(format(turn[key] * factor, form) for _, key, form, factor in COLUMNS)]
            for what, turn in slowest_first
        ),
    )
    for what, turn in measured.items():
        if turn["status"] != 200:
            print(f"\n{what} answered {turn['status']} and is not measured.")
    for what, commands in listing.items():
        print(f"\n{what} sent {', '.join(commands)}.")
    slow, busy, long = (max(good, key=lambda what: good[what][key]) for key in ("ms", "busy", "sent"))
    print_bars(
        [
            at_most(f"the slowest page: {slow}", SLOWEST, good[slow]["ms"], ".0f", " ms"),
            at_most(f"the most work, of both processors: {busy}", SLOWEST, good[busy]["busy"], ".0f", " ms"),
            at_most(f"the longest page: {long}, compressed", LARGEST, good[long]["sent"], ".0f", " KB"),
            none("pages above the one or the other", sum(map(is_above, good.values()))),
            none(f"{' and '.join(LISTING)} seen by MONITOR", sum(map(len, listing.values()))),
            none("pages that did not answer 200", len(measured) - len(good)),
        ]
    )


def is_above(turn: Turn) -> bool:
    return bool(turn["ms"] > SLOWEST or turn["sent"] > LARGEST)
