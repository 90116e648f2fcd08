"""
The peers that are programs of other languages: BullMQ, one Node process with concurrency 100, and Sidekiq, one Ruby
process of 10 threads. BullMQ keeps completed jobs for ever, which is its default.
"""

from __future__ import annotations

from benchmarks.peers import Peer, by_program, here

_node, _ruby = ("node", here("bullmq.mjs")), here("sidekiq.rb")
BULLMQ = Peer(
    by_program(*_node),
    [*_node, "worker"],
    lambda redis: not redis.llen("bull:benchmark:wait") and not redis.llen("bull:benchmark:active"),
)
SIDEKIQ = Peer(
    by_program("ruby", _ruby),
    ["sidekiq", "-r", _ruby, "-c", "10", "-q", "default"],
    # Sidekiq takes a job with BRPOP, and acknowledges nothing.
    lambda redis: not redis.llen("queue:default"),
)
