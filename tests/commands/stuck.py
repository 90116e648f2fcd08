"""
`python -m tests.commands.stuck FOLDER [LIFELINE]`: a worker that a stuck thread keeps from ending.

It asks for a fresh process once there is a file "gate" in FOLDER; the fresh one finds a file "stuck" there and
just works. While there is a file "hold", the old one waits before it starts anew.
"""

import sys
from pathlib import Path
from threading import Event, Thread
from time import sleep

import django

from components.services.queues import Consumer
from components.services.queues.worker.worker import Worker
from components.workers.loop import STUCK
from components.workers.running import Run, run


class Stuck(Worker):
    def __init__(self, folder: Path) -> None:
        super().__init__(Consumer(), lease=30)
        self._gate, self._mark, self._hold = folder / "gate", folder / "stuck", folder / "hold"
        self._was_stuck = self._mark.exists()

    def tick(self) -> float:
        return 0.01

    def is_done(self) -> bool:
        return self.is_stopping or (self._gate.exists() and not self._was_stuck)

    def close(self) -> int:
        code = super().close()
        if self._was_stuck:
            return code
        Thread(target=Event().wait).start()  # would keep an interpreter from ending
        self._mark.touch()
        return STUCK

    def part(self) -> None:
        while self._hold.exists():
            sleep(0.005)


if __name__ == "__main__":
    django.setup()
    lifeline = int(sys.argv[2]) if len(sys.argv) > 2 else None
    run(Stuck(Path(sys.argv[1])), "Stub", Run(lifeline=lifeline))
