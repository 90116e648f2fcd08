"""What one round trip costs: a script that does nothing, sent by redis-py as any other."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.counting.base import Guarantees, System
from components.kit.client import get_client


class Floor(System):
    guarantees = Guarantees("nothing", "-", "-", "-")

    def __init__(self, version: str) -> None:
        super().__init__(version)
        self._sha = ""

    def begin(self) -> None:
        self._sha = str(get_client().script_load("return 1"))

    def counting(self, name: str) -> Callable[[], object]:
        client, sha = get_client(), self._sha
        return lambda: client.evalsha(sha, 0)

    def total(self, name: str) -> None:
        return None
