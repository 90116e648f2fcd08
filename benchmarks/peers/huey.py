"""huey: BRPOP by one thread, which is its default worker."""

from __future__ import annotations

from huey import RedisHuey

from benchmarks.harness import mark, url
from benchmarks.peers import Peer, one_by_one

app = RedisHuey("benchmark", url=url())


@app.task()
def noop() -> None: ...


@app.task()
def note(name: str) -> None:
    mark(name)


_command = ["-m", "huey.bin.huey_consumer", f"{__name__}.app"]
PEER = Peer(
    one_by_one(note, noop),
    [*_command, "--workers", "1", "--worker-type", "thread", "--quiet"],
    lambda redis: not app.pending_count(),
)
