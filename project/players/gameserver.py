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

from .crowd import MOMENTS, Crowd
from .gamelog import GameLog, make_past
from .geography import read_locations

#: Lines of a usual second, and seconds between two writes.
_A_SECOND = 100
_PAUSE = 0.25


def run(folder: Path) -> None:
    """Write until a signal arrives."""
    crowd, rng = Crowd(read_locations()), Random()
    make_past(folder, crowd, datetime.now(UTC))
    with closing(GameLog(folder)) as log:
        while True:
            now = datetime.now(UTC)
            hour = now.replace(minute=0, second=0, microsecond=0)
            count = round(_A_SECOND * _PAUSE * crowd.activity(hour) * rng.uniform(0.2, 1.8))
            log.write(crowd.lines(hour, [MOMENTS[now.minute * 60 + now.second]] * count, rng))
            time.sleep(_PAUSE)


if __name__ == "__main__":
    try:
        with suppress(KeyboardInterrupt):
            run(Path(sys.argv[1]))
    except OSError as error:
        sys.exit(f"The game's log cannot be written: {error}")
