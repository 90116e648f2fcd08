"""Counters: what was counted and sent is there, once; only a killed process takes along what it had not sent."""

import os
from collections.abc import Iterator

from components.exceptions import RedisUnavailable
from components.services.counters import CounterReader, count, flush
from tests.chaos.players import Notes, Player, Role, insist, note

BATCH, NAMES = 300, 5


def play(player: Player) -> None:
    counted = 0
    while not player.is_over:
        counted += BATCH
        note("counting", number=counted)
        for number in range(BATCH):
            count(f"tally:{os.getpid()}:{number % NAMES}")
        try:
            flush()
        except RedisUnavailable:
            continue  # it is sent later
        note("counted", number=counted)
        player.nap(0.1)
    insist(flush)
    note("counted", number=counted)
    note("tallied")


ROLES = {"tallier": Role(2, play)}


def judge(notes: Notes) -> Iterator[str]:
    total = 0
    whole = {each["pid"] for each in notes["tallied"]}
    for pid in {each["pid"] for each in notes["counting"]}:
        most = max(each["number"] for each in notes["counting"] if each["pid"] == pid)
        least = max((each["number"] for each in notes["counted"] if each["pid"] == pid), default=0)
        found = CounterReader().read([f"tally:{pid}:{number}" for number in range(NAMES)], 3_600)
        there = sum(series.total for series in found.values())
        total += there
        if not (most if pid in whole else least) <= there <= most:
            yield f"{pid} has counted {most} and sent {least}, and Redis has {there}."
    if total < 10_000:
        yield f"{total} were counted only: nothing was tested."


def figures(notes: Notes) -> str:
    return f"{BATCH * len(notes['counting'])} counted, {BATCH * len(notes['counted'])} sent at once"
