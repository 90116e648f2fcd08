"""What all players of the cast have in common: when to stop, whom to wait for, and how to try again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeVar

from components.exceptions import RedisUnavailable

_T = TypeVar("_T")


@dataclass(frozen=True)
class Player:
    """One process of a role. *number* tells it from the others of its role, and stays when it is replaced."""

    folder: Path
    number: int
    random: Random

    @property
    def is_over(self) -> bool:
        """Whether the trouble is over, so that players come to an end."""
        return (self.folder / "over").exists()

    def is_alone(self, role: str) -> bool:
        """Whether nobody plays *role* any more."""
        return not any(self.folder.glob(f"{role}.*.pid"))

    def nap(self, longest: float) -> None:
        """Sleep for a random time of at most that many seconds."""
        time.sleep(self.random.uniform(0, longest))


@dataclass(frozen=True)
class Role:
    """So many players do *play*. Those of a *daemon* go on until all has settled; others return."""

    count: int
    play: Callable[[Player], None]
    is_daemon: bool = False


def insist(call: Callable[[], _T]) -> _T:
    """Repeat *call* until Redis answers, and return what it returns."""
    while True:
        try:
            return call()
        except RedisUnavailable:
            time.sleep(0.02)
