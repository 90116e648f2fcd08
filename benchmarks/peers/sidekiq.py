"""Sidekiq: one Ruby process of 10 threads."""

from __future__ import annotations

from benchmarks.peers import Peer, by_program, here

PEER = Peer(
    by_program("ruby", here("sidekiq.rb")),
    ["sidekiq", "-r", here("sidekiq.rb"), "-c", "10", "-q", "default"],
    # Sidekiq takes a job with BRPOP, and acknowledges nothing.
    lambda redis: not redis.llen("queue:default"),
)
