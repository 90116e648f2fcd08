"""
Fetch redis-py's own tests of its locks into a folder, for REDIS_TESTS of test_lock.py:

    REDIS_TESTS=$(python -m tests.redis_suite.fetch FOLDER)

They are those of exactly the redis-py that is installed. Only the two modules about locks are unpacked.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

from tests.support.distributions import fetch

WANTED = ("tests/test_lock.py", "tests/test_asyncio/test_lock.py")

if __name__ == "__main__":
    folder = fetch(f"redis=={version('redis')}", Path(sys.argv[1]), lambda path: str(path) in WANTED)
    print(folder / "tests")  # noqa: T201
