"""Semaphores: no more surely hold a permit than may, whatever their clocks show, and all permits come back."""

import time
from collections.abc import Iterator

from components.exceptions import PermitLost, RedisUnavailable, SemaphoreFull
from components.services.semaphores import Semaphore
from tests.chaos.players import Notes, Player, Role, note

NAME, LIMIT, LEASE = "shared", 3, 0.8


def play(player: Player) -> None:
    now, skew = time.time, (0.0, 3600.0, -3600.0)[player.number % 3]
    time.time = lambda: now() + skew
    semaphore = Semaphore(NAME, limit=LIMIT, lease=LEASE)
    while not player.is_over:
        try:
            with_permit(player, semaphore)
        except RedisUnavailable:
            time.sleep(0.05)
        except (PermitLost, SemaphoreFull) as error:
            note(type(error).__name__)


def with_permit(player: Player, semaphore: Semaphore) -> None:
    permit = semaphore.acquire(wait=player.random.choice([None, None, 0.5]))
    note("permit", id=permit.id, until=permit.valid_until)
    if player.random.random() < 0.03:
        for _ in range(3):
            time.sleep(LEASE * 0.4)
            permit.refresh()
            note("permit", id=permit.id, until=permit.valid_until)
    else:
        player.nap(0.03)
    note("returned", id=permit.id)
    permit.release()


ROLES = {"sharer": Role(6, play)}


def is_settled() -> bool:
    info = Semaphore(NAME, limit=LIMIT, lease=LEASE).info()
    return not info.used and not info.waiting


def judge(notes: Notes) -> Iterator[str]:
    spans: dict[str, list[float]] = {}
    for each in notes["permit"]:
        span = spans.setdefault(each["id"], [each["at"], each["until"]])
        span[0], span[1] = min(span[0], each["at"]), max(span[1], each["until"])
    for each in notes["returned"]:
        spans[each["id"]][1] = min(spans[each["id"]][1], each["at"])
    if len(spans) < 60:
        yield f"{len(spans)} permits were given only: nothing was tested."
    now = most = 0
    # What ends at an instant has ended before what begins at it.
    for _at, change in sorted(
        [(began, 1) for began, _ in spans.values()] + [(end, -1) for _, end in spans.values()]
    ):
        now += change
        most = max(most, now)
    if most != LIMIT:
        yield f"At most {most} held a permit at once, and {LIMIT} may."
    if not is_settled():
        yield f"Permits have not come back: {Semaphore(NAME, limit=LIMIT, lease=LEASE).info()}"


def figures(notes: Notes) -> str:
    returned, lost, refused = (len(notes[kind]) for kind in ("returned", "PermitLost", "SemaphoreFull"))
    return f"{returned} permits returned, {lost} lost, {refused} refused"
