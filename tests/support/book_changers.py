"""
Processes that change an address book: members join, leave, are renamed and selected, and all are reloaded.

`python -m tests.support.book_changers URL BOOK CHANGES SEED` is one of them, and prints how often it made each
change.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from random import Random
from subprocess import PIPE, Popen

from components.exceptions import LoadSuperseded
from components.services.autocomplete import AddressBook
from components.testing import redis_at
from tests.commands.processes import ROOT

#: Who is in the book throughout, under this name; the others come and go under one of the labels.
STAYING = {f"s{number}": f"anna {number:02} smith" for number in range(70)}
MOVING = [f"m{number}" for number in range(12)]
LABELS = ["ann", "anna zz", "smith ann", "an an an", "bob"]


class Changer:
    """Makes one change after another, each kind with some probability."""

    def __init__(self, book: AddressBook, seed: int) -> None:
        self.book, self._chosen = book, Random(seed)
        self.done: Counter[str] = Counter()

    def change(self) -> None:
        what = self._chosen.choices(
            ["add", "remove", "rename", "select", "load", "replace"], [4, 4, 4, 4, 1, 1]
        )[0]
        one, label = self._chosen.choice(MOVING), self._chosen.choice(LABELS)
        match what:
            case "add":
                self.book.add(label, id=one)
            case "remove":
                self.book.remove(one)
            case "rename":
                self.book.rename(one, label)
            case "select":
                self.book.select(self._chosen.choice([one, *STAYING]))
            case "load":
                self.book.load(self._names())
            case "replace":
                try:
                    self.book.load(self._names(), replace=True)
                except LoadSuperseded:  # by that of another process
                    what = "superseded"
        self.done[what] += 1

    def _names(self) -> list[tuple[str, str]]:
        moving = self._chosen.sample(MOVING, self._chosen.randrange(len(MOVING)))
        names = [*STAYING.items(), *((one, self._chosen.choice(LABELS)) for one in moving)]
        self._chosen.shuffle(names)
        return names


class Crew:
    """A number of processes, each with a number of changes to make."""

    def __init__(self, url: str, name: str, *, processes: int, changes: int) -> None:
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        command = [sys.executable, "-m", __name__, url, name, str(changes)]
        self._processes = [
            Popen([*command, str(seed)], cwd=ROOT, env=environment, stdout=PIPE, text=True)
            for seed in range(processes)
        ]

    @property
    def is_at_work(self) -> bool:
        return any(process.poll() is None for process in self._processes)

    def done(self) -> Counter[str]:
        """Wait until they have ended, and return how often they made each change."""
        counts: Counter[str] = Counter()
        for process in self._processes:
            said, _nothing = process.communicate()
            assert process.returncode == 0
            counts.update(json.loads(said))
        return counts

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


def main(url: str, name: str, changes: int, seed: int) -> None:
    with redis_at(url):
        changer = Changer(AddressBook(name), seed)
        for _ in range(changes):
            changer.change()
        print(json.dumps(changer.done))  # noqa: T201


if __name__ == "__main__":
    import django

    django.setup()
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
