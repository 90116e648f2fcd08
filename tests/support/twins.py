"""The asynchronous twins of methods, for tests that call the methods."""

import asyncio
from typing import Any


class Awaited:
    """An object of which each method is its asynchronous twin, run to its end unless another is running."""

    def __init__(self, its: object, runner: asyncio.Runner) -> None:
        self._its, self._runner = its, runner

    def __getattr__(self, name: str) -> Any:
        twin = getattr(self._its, f"a{name}", None)
        if twin is None or self._runner.get_loop().is_running():
            return getattr(self._its, name)
        return lambda *args, **named: self._runner.run(twin(*args, **named))
