"""
Stop another process when this one ends.

The watcher is a shell that reads from a pipe which only this process holds open. However this process ends, even by
SIGKILL, the kernel closes the pipe, and the shell sends SIGTERM to the watched process. This works on Linux and
macOS, and from any thread. Forked children close the pipe at once.
"""

from __future__ import annotations

import os
import subprocess
from typing import IO, cast

_WATCH = 'read -r _; kill -TERM "$1"'


class Watcher:
    """Watches the process *pid* until close(), which must be called before anyone reaps that process."""

    def __init__(self, pid: int) -> None:
        # A separate session: Ctrl-C in the terminal is for this process, not for its watcher.
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
        """Stop watching; the watched process goes on, and its id may now be reused."""
        self._shell.kill()
        self._shell.wait()
        self._pipe.close()
