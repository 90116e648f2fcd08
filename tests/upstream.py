"""
The test suites of Django, redis-py and django-redis that this app has to pass, which only their source
distributions contain.

    python -m tests.upstream

downloads them through pip into the environment that runs it, for exactly the releases installed there. `make test`
does that once. Without them, the tests of tests/django_suite, tests/redis_suite and
tests/django_redis_suite are skipped.
"""

import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import pytest

#: Django 5.2 has no tests of tasks, and the distribution of the backport has none either. The backport has to pass
#: those of the release that it was ported from.
BACKPORTED = "6.0"


@dataclass(frozen=True)
class Suite:
    """Files of one source distribution."""

    requirement: str
    is_wanted: Callable[[PurePosixPath], bool]

    @property
    def folder(self) -> Path:
        """Where the files are kept: in this environment, one folder per release."""
        return Path(sys.prefix) / "upstream-tests" / self.requirement.replace("==", "-").replace("*", "x")

    @property
    def tests(self) -> Path:
        """The folder `tests` of the distribution. Skip the calling module if it was not downloaded."""
        if not (self.folder / "tests").is_dir():
            pytest.skip(
                f"The tests of {self.requirement} are not here. Run: python -m tests.upstream",
                allow_module_level=True,
            )
        return self.folder / "tests"

    def fetch(self) -> None:
        """
        Download the distribution and unpack the wanted files, unless they are here already.

        Raise CalledProcessError if pip fails.
        """
        if self.folder.exists():
            return
        self.folder.parent.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=self.folder.parent) as name:
            unpacked = Path(name) / "unpacked"
            with tarfile.open(self._download(Path(name))) as archive:
                for member in archive:
                    path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
                    if self.is_wanted(path) and (file := archive.extractfile(member)):
                        (unpacked / path).parent.mkdir(parents=True, exist_ok=True)
                        (unpacked / path).write_bytes(file.read())
            unpacked.rename(self.folder)  # complete, or not there

    def _download(self, folder: Path) -> Path:
        # Only the text is wanted, so it does not matter whether the release runs on this Python.
        package = self.requirement.partition("==")[0]
        options = ["--quiet", "--no-deps", f"--no-binary={package}", "--ignore-requires-python"]
        command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", *options]
        subprocess.run([*command, f"--dest={folder}", self.requirement], check=True, stdout=sys.stderr)
        [found] = folder.glob("*.tar.gz")
        return found


def django_suite() -> Suite:
    """Return Django's tests of django.tasks."""
    installed = version("Django")
    release = f"{BACKPORTED}.*" if installed.startswith("5.2") else installed
    return Suite(f"Django=={release}", lambda path: path.parts[:-1] == ("tests", "tasks"))


def redis_suite() -> Suite:
    """Return redis-py's tests of its locks."""
    wanted = ("tests/test_lock.py", "tests/test_asyncio/test_lock.py")
    return Suite(f"redis=={version('redis')}", lambda path: str(path) in wanted)


def django_redis_suite() -> Suite:
    """Return django-redis' tests of its clients."""
    release = version("django-redis")
    return Suite(f"django-redis=={release}", lambda path: path.parts[:1] == ("tests",))


def suites() -> tuple[Suite, ...]:
    """Return all."""
    return django_suite(), redis_suite(), django_redis_suite()


if __name__ == "__main__":
    for suite in suites():
        suite.fetch()
