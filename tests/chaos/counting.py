"""
Processes that count, and note what they have done before and after they do it.

    python -m tests.chaos.counting FOLDER BUFFERED DIRECT     # with the environment of a worker

Django is loaded once; the processes are forked from that, as a server for the web does, and whoever is killed gets a
successor. Each notes four numbers in a file that is named by its process id: counted in memory, of which surely sent;
updates begun, of which surely done. The notes are memory of the kernel, which a killed process leaves behind.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import sys
from pathlib import Path

import django

PROCESSES = 16
NAMES = 20  # of each process
BATCH = 500  # counted between two sendings by hand; a thread sends as well
_NOTE = struct.Struct("=4Q")


class Note:
    """What one process has done."""

    def __init__(self, path: Path, *, is_new: bool = False) -> None:
        if is_new:
            path.write_bytes(bytes(_NOTE.size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _NOTE.size)

    def write(self, *numbers: int) -> None:
        _NOTE.pack_into(self._memory, 0, *numbers)

    def read(self) -> tuple[int, int, int, int]:
        counted, sent, begun, done = _NOTE.unpack_from(self._memory)
        return counted, sent, begun, done


def work(folder: Path, buffered: int, direct: int) -> None:
    """Count *buffered* times in memory, and *direct* times at once."""
    from components.exceptions import RedisUnavailable
    from components.services.counters import Counter, count, flush

    me = os.getpid()
    note = Note(folder / str(me), is_new=True)
    updates = Counter(f"direct:{me}")
    names = [f"buffered:{me}:{number}" for number in range(NAMES)]
    counted = sent = begun = done = 0
    while counted < buffered or sent < counted or begun < direct:
        more = min(BATCH, buffered - counted)
        counted += more
        note.write(counted, sent, begun, done)
        for number in range(more):
            count(names[number % NAMES])
        try:
            flush()
            sent = counted
        except RedisUnavailable:
            pass  # it is sent later
        note.write(counted, sent, begun, done)
        while begun * buffered < counted * direct:
            begun += 1
            note.write(counted, sent, begun, done)
            try:
                updates.update()
                done += 1
            except RedisUnavailable:
                pass  # it may have counted
            note.write(counted, sent, begun, done)


def main(folder: Path, buffered: int, direct: int) -> None:
    shares = [(buffered // PROCESSES, direct // PROCESSES)] * PROCESSES
    running = {_fork(folder, *share): share for share in shares}
    while running:
        pid, status = os.wait()
        share = running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGKILL:
            running[_fork(folder, *share)] = share
        elif code:
            sys.exit(code)
        else:
            (folder / f"{pid}.ended").touch()


def _fork(folder: Path, buffered: int, direct: int) -> int:
    pid = os.fork()
    if not pid:
        work(folder, buffered, direct)
        sys.exit()
    return pid


if __name__ == "__main__":
    django.setup()
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
