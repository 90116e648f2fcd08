"""BullMQ: one Node process with concurrency 100. It keeps completed jobs for ever, which is its default."""

from __future__ import annotations

from benchmarks.peers import Peer, by_program, here

_command = ("node", here("bullmq.mjs"))
PEER = Peer(
    by_program(*_command),
    [*_command, "worker"],
    lambda redis: not redis.llen("bull:benchmark:wait") and not redis.llen("bull:benchmark:active"),
)
