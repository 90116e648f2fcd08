"""
The crowd: players as lines of a game server's log in the book's format, `IP date time event`.

A player is an address. Some play more than others; most play at weekends and in their own evening; and the popularity
of the game in a country changes from day to day. As in any log, some lines cannot be counted: one in three thousand.
All random numbers are seeded, so each run makes the same crowd and the same days.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from functools import cache, lru_cache
from itertools import accumulate
from random import Random

from .geography import Location

#: How much is played at each hour of local time, from midnight on.
_HOURS = (5, 3, 2, 1, 1, 1, 2, 3, 4, 4, 5, 6, 7, 6, 6, 7, 9, 11, 13, 15, 16, 15, 12, 8)
_USUAL = sum(_HOURS) / len(_HOURS)
_WEEKEND = 1.25
_PLAYERS = 3  # addresses for each of a place's "players"
_EVENTS = {
    "login": 9,
    "logout": 8,
    "duel-won": 7,
    "duel-lost": 7,
    "trade": 6,
    **{f"level-{level}": 30 // level for level in range(1, 31)},
    **{f"achievement-{number}": 1 for number in range(701, 780)},
}
#: Addresses outside of all ranges, which therefore have no place.
NOWHERE = ("255.10.20.30", "254.7.7.7", "2001:db8:ffff::17")
_BROKEN_ONE_IN = 3000
#: Other lines of a game server's log, made of an address, a day and a time.
_BROKEN = (
    "WARNING queue of events is 3 s behind",
    "{0}",
    "256.1.1.1 {1} {2} login",
    "{0} 0000-00-00 00:00:00 login",
    "{0} 2099-01-01 00:00:17 login",
    "",
)
#: Minutes and seconds, as written in the log.
MOMENTS = [f"{second // 60:02}:{second % 60:02}" for second in range(3600)]


class Crowd:
    """The players of *locations*."""

    def __init__(self, locations: Sequence[Location]) -> None:
        rng = Random("who plays")
        self._locations = locations
        self._players: list[str] = []
        # For each player: the place, and how much they play.
        self._habits: list[tuple[int, float]] = []
        for number, location in enumerate(locations):
            for _ in range(location.players * _PLAYERS):
                network = rng.choice(location.networks)
                self._players.append(str(network[rng.randrange(network.num_addresses)]))
                self._habits.append((number, rng.expovariate(1)))
        for address in NOWHERE:
            self._players.append(address)
            self._habits.append((rng.randrange(len(locations)), 20.0))
        self._habit = sum(much for _, much in self._habits)
        self._chances = lru_cache(maxsize=1)(self._chances_at)  # one hour follows another

    def activity(self, hour: datetime) -> float:
        """Return how much is played in this hour (of UTC); 1 is the usual amount."""
        return self._chances(hour)[-1] / self._habit

    def lines(self, hour: datetime, moments: Sequence[str], rng: Random) -> list[str]:
        """Yield a line for each of the MOMENTS of an hour (of UTC)."""
        count = len(moments)
        players = rng.choices(self._players, cum_weights=self._chances(hour), k=count)
        events = rng.choices(list(_EVENTS), cum_weights=_event_chances(), k=count)
        begin = f"{hour:%Y-%m-%d %H}:"
        lines = [
            f"{player} {begin}{moment} {event}"
            for player, moment, event in zip(players, moments, events, strict=True)
        ]
        for at in rng.sample(range(count), some(count / _BROKEN_ONE_IN, rng)):
            lines[at] = rng.choice(_BROKEN).format(*lines[at].split())
        return lines

    def _chances_at(self, hour: datetime) -> list[float]:
        """Return cumulated chances: the probability that this player, or one before, does something."""
        factors = [
            _HOURS[(there := hour + timedelta(hours=location.utc_offset)).hour]
            / _USUAL
            * _mood(location.country, there.date())
            for location in self._locations
        ]
        return list(accumulate(much * factors[number] for number, much in self._habits))


@cache
def _mood(country: str, day: date) -> float:
    weekend = _WEEKEND if day.weekday() >= 5 else 1
    return weekend * Random(f"{country} {day}").uniform(0.7, 1.3)


@cache
def _event_chances() -> list[int]:
    return list(accumulate(_EVENTS.values()))


def some(expected: float, rng: Random) -> int:
    """Return a random whole number with this mean."""
    return int(expected) + (rng.random() < expected % 1)
