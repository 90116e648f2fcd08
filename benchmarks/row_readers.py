"""
Processes, one for each system, that read cached rows or do the work of the book's daemon.

A process gets a job as a line of JSON on its input, and answers with another. cacheops patches all models of a
process, and redis-py checks only once for hiredis, so each system has its own process and environment. redis must not
be imported before the environment is set up. So the process runs this module, which then imports row_jobs.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any


class Reader:
    """The other end of such a process. *system* is the name of a class in row_jobs.py."""

    def __init__(self, system: str, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.row_readers", system],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, job: str, *arguments: Any) -> Any:
        """
        Return the result of a job. Raises RuntimeError if the process has ended; it writes its error to our stderr.
        """
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([job, *arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"The process for the job {job!r} has ended; its error is above.")
        return json.loads(line)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]
        self._process.wait()


def main() -> None:
    if "BENCHMARK_WITHOUT_HIREDIS" in os.environ:
        sys.modules["hiredis"] = None  # type: ignore[assignment]

    import django

    django.setup()

    from benchmarks import row_jobs

    system = getattr(row_jobs, sys.argv[1])()
    for line in sys.stdin:
        job, *arguments = json.loads(line)
        print(json.dumps(getattr(row_jobs, job)(system, *arguments)), flush=True)


if __name__ == "__main__":
    main()
