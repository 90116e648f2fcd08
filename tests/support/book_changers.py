"""
Processes that change an address book: members join, leave, are renamed and selected, and all are loaded anew.

`python -m tests.support.book_changers URL BOOK SEED` is one. It says "ready", goes on until its input ends, and says
how much it has done of what.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
    """One after the other, each with some likelihood."""

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


@contextmanager
def changing(url: str, name: str, *, processes: int) -> Iterator[Counter[str]]:
    """So many of them at work; what they have done is there when they have ended."""
    done: Counter[str] = Counter()
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    command = [sys.executable, "-m", __name__, url, name]
    with ExitStack() as stack:
        all_of_them = [
            stack.enter_context(
                Popen([*command, str(seed)], cwd=ROOT, env=environment, stdin=PIPE, stdout=PIPE, text=True)
            )
            for seed in range(processes)
        ]
        try:
            for process in all_of_them:
                assert process.stdout
                assert process.stdout.readline() == "ready\n"
            yield done
            for process in all_of_them:
                said, _nothing = process.communicate()
                assert process.returncode == 0
                done.update(json.loads(said))
        finally:
            for process in all_of_them:
                process.kill()


def main(url: str, name: str, seed: int) -> None:
    with redis_at(url):
        changer, is_over = Changer(AddressBook(name), seed), threading.Event()
        print("ready", flush=True)  # noqa: T201
        threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
        while not is_over.is_set():
            changer.change()
        print(json.dumps(changer.done))  # noqa: T201


if __name__ == "__main__":
    import django

    django.setup()
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
