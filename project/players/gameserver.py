"""
`python -m project.players.gameserver FOLDER`: the log of a game server.

Like a real one, it needs neither Django nor Redis. If it is killed and started again, it goes on.
"""

from __future__ import annotations

import sys
import time
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from .crowd import MOMENTS, Crowd, some
from .gamelog import A_DAY, GameLog, make_past
from .geography import read_locations

#: Seconds between two writes.
_PAUSE = 0.25
_USUAL = A_DAY / 86_400 * _PAUSE


def run(folder: Path) -> None:
    """Write until a signal arrives."""
    crowd, rng = Crowd(read_locations()), Random()
    make_past(folder, crowd, datetime.now(UTC))
    with closing(GameLog(folder)) as log:
        while True:
            now = datetime.now(UTC)
            hour = now.replace(minute=0, second=0, microsecond=0)
            count = some(_USUAL * crowd.activity(hour) * rng.uniform(0.2, 1.8), rng)
            log.write(crowd.lines(hour, [MOMENTS[now.minute * 60 + now.second]] * count, rng))
            time.sleep(_PAUSE)


if __name__ == "__main__":
    try:
        with suppress(KeyboardInterrupt):
            run(Path(sys.argv[1]))
    except OSError as error:
        sys.exit(f"The game's log cannot be written: {error}")
