"""
A process that must not outlive this one.

The watcher is a shell that reads from a pipe which only this process holds open. The kernel closes
it however this process ends, SIGKILL included; the shell then sends the watched process a SIGTERM.
That works alike on Linux and macOS, and from any thread. Forked children let go of the pipe at once.
"""

from __future__ import annotations

import os
import subprocess
from typing import IO, cast

_WATCH = 'read -r _; kill -TERM "$1"'


class Watcher:
    """Watch over the process *pid* until close(), to be called before anyone waits for it (reaps it)."""

    def __init__(self, pid: int) -> None:
        # A session of its own: Ctrl-C in the terminal is for this process, not for its watcher.
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "watcher", str(pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        self._pipe = cast(IO[bytes], self._shell.stdin)
        os.register_at_fork(after_in_child=self._pipe.close)

    def close(self) -> None:
        """Watch no more; the watched process goes on, and its id may now be given to another."""
        self._shell.kill()
        self._shell.wait()
        self._pipe.close()
