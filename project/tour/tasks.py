"""The tasks of the tour's buttons, which a crew of two workers runs (project/supervisor.py)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from components.services.locks import lock
from components.services.logs import PLACES, Aggregation, Copier, LogStream, totals_of
from components.services.logs.traffic import Traffic
from components.services.queues import task
from project.market import ledger
from project.market.models import FlashPurchase, FlashSale, Item, Player
from project.players.crowd import MOMENTS, Crowd
from project.players.geography import read_locations

QUEUE = "tour"

BUYERS, PIECES = 1_000, 100
LANTERN = "Lantern of the Great Rush"

ARENA, FIGHTERS, SECONDS = "arena", 12, 10

#: Tasks for the worker that will be killed, and the seconds that each takes.
NAPS, NAP = 8, 4

LINES = 1_000_000
#: The job of these lines. The figures of the game's own log stay as they are.
JOB = "tour"

#: For how long what a button has made is kept.
_KEPT = timedelta(minutes=10)
#: How long a million lines take at most. A younger log may still be written.
_WRITTEN = timedelta(minutes=5)


def rush() -> None:
    """Open a sale, and let everybody buy at once. Ten minutes later, or before the next rush, it is undone."""
    undo_rush.call()
    now = timezone.now()
    sale = FlashSale.objects.create(
        slug=f"rush-{now:%H%M%S%f}",
        name=LANTERN,
        kind=Item.Kind.CURIO,
        price=1,
        stock=PIECES,
        remaining=PIECES,
        opens_at=now,
        ends_at=now + timedelta(minutes=5),
    )
    players = [*Player.objects.filter(funds__gte=1).values_list("pk", flat=True)]
    for number in range(BUYERS):
        buy_one.enqueue(sale.slug, players[number % len(players)])
    undo_rush.using(run_after=_KEPT).enqueue()


@task(queue_name=QUEUE)
def buy_one(slug: str, buyer_id: int) -> str:
    """Try to buy one piece; return what came of it."""
    try:
        ledger.sell_flash(slug, buyer_id, 1)
    except ledger.Refusal as refusal:
        return str(refusal)
    return "bought"


@task(queue_name=QUEUE)
@transaction.atomic
def undo_rush() -> None:
    """Give the gold back, and take the lanterns away."""
    over = FlashSale.objects.filter(name=LANTERN)
    purchases = FlashPurchase.objects.filter(sale__in=over)
    Player.objects.filter(flash_purchases__in=purchases).update(funds=F("funds") + 1)
    purchases.delete()
    over.delete()
    Item.objects.filter(name=LANTERN).delete()


@task(queue_name=QUEUE)
def fight() -> int:
    """Let many threads want one lock, and return how often it was held."""
    until = time.monotonic() + SECONDS
    with ThreadPoolExecutor(FIGHTERS) as threads:
        return sum(threads.map(lambda number: _fighter(number, until), range(FIGHTERS)))


def _fighter(number: int, until: float) -> int:
    held = 0
    while time.monotonic() < until:
        with lock(ARENA, timeout=5, blocking_timeout=SECONDS * 2, owner=f"fighter {number + 1}"):
            held += 1
            time.sleep(0.02)
    return held


@task(queue_name=QUEUE)
def nap() -> None:
    """Take some seconds."""
    time.sleep(NAP)


@task(queue_name=QUEUE)
def write_lines() -> int:
    """
    Write a million lines into a log of their own, and copy them meanwhile; another process counts them
    (project/supervisor.py). Ten minutes later, or before the next million, this is undone.
    """
    delete_lines.call()
    copier, path = Copier(LogStream(JOB)), _log()
    path.parent.mkdir(parents=True, exist_ok=True)
    crowd, rng = Crowd(read_locations()), Random()
    now = datetime.now(UTC)
    hour = now.replace(minute=0, second=0, microsecond=0)
    moments = [MOMENTS[now.minute * 60 + now.second]] * 10_000
    with path.open("w", encoding="utf-8") as file:
        for _ in range(LINES // len(moments)):
            file.write("\n".join(crowd.lines(hour, moments, rng)) + "\n")
            file.flush()
            copier.copy(path)
    delete_lines.using(run_after=_KEPT).enqueue()
    return LINES


@task(queue_name=QUEUE)
def delete_lines() -> None:
    """Delete the lines, and everything that was counted of them."""
    _log().unlink(missing_ok=True)
    LogStream(JOB).forget(_WRITTEN.total_seconds())
    Traffic(JOB).forget(datetime.now(UTC).date() + timedelta(days=1))  # the days before tomorrow: all
    Aggregation(PLACES, job=JOB).drop([totals_of(PLACES)])


def _log() -> Path:
    return Path(settings.VAR / "tour" / "lines.log")
