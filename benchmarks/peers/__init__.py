"""The systems to measure. Each module is imported only when its turn may come: their libraries may not be there."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import cast

from benchmarks.peers.base import Peer

#: name on the command line -> distribution, class
PEERS = {
    "huey": ("huey", "benchmarks.peers.huey.Huey"),
    "dramatiq": ("dramatiq", "benchmarks.peers.dramatiq.Dramatiq"),
    "rq": ("rq", "benchmarks.peers.rq.SimpleRQ"),
    "rq-fork": ("rq", "benchmarks.peers.rq.ForkingRQ"),
    "celery": ("celery", "benchmarks.peers.celery.Celery"),
    "saq": ("saq", "benchmarks.peers.saq.SAQ"),
}
USUAL = ("huey", "dramatiq", "rq", "celery", "saq")


def find(name: str) -> Peer | None:
    """The peer of that name; None if it is not installed."""
    distribution, path = PEERS[name]
    try:
        installed = version(distribution)
    except PackageNotFoundError:
        return None
    module, _, kind = path.rpartition(".")
    return cast(Peer, getattr(import_module(module), kind)(name, installed))
