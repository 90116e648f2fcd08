"""Copy files of logs into Redis, in chunks, for aggregations to count."""

import math
import signal
import threading
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from components.exceptions import ExtraNotInstalled, InvalidName, InvalidValue, RedisUnavailable
from components.management.output import Progress
from components.services.logs import (
    DEFAULT_JOB,
    LIMIT,
    PATIENCE,
    PAUSE,
    SIZE,
    Copier,
    Follower,
    LogStream,
    Problem,
    find_files,
)
from components.workers.options import WrongUsage, size
from components.workers.signals import STOPPING

_NAMED = 3  # how many files with a waiting last line the summary names


class Command(BaseCommand):
    help = (
        "Copies log files (plain, gzip, zstd) into Redis in chunks of whole lines, which aggregations "
        "count. It continues where it stopped, and copies no file twice, even if the file was renamed. Exit "
        "codes: 0 everything is copied; 1 something could not be read, which is reported with file, line "
        "and byte, and the rest is copied; 2 wrong usage, or Redis does not answer."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "paths", nargs="+", metavar="PATH", help="A file, a folder, a pattern, or - for standard input."
        )
        parser.add_argument(
            "--job",
            default=DEFAULT_JOB,
            help=f"Copy for the aggregations of this job (default: {DEFAULT_JOB}).",
        )
        parser.add_argument(
            "--limit",
            type=size,
            default=LIMIT,
            metavar="BYTES",
            help="How many bytes, compressed, all producers may have in flight: 256M (default), 1G.",
        )
        parser.add_argument(
            "--chunk",
            type=size,
            default=SIZE,
            metavar="BYTES",
            help="Lines of a chunk, before compression, and the longest line (default: 1M, at most 16M).",
        )
        parser.add_argument(
            "--format",
            choices=["auto", "plain"],
            default="auto",
            help="auto: the first bytes of a file tell whether it is gzip, zstd or plain (default). "
            "plain: all are plain.",
        )
        parser.add_argument(
            "--complete",
            action="store_true",
            help="Copy a last line without a newline at once; use this if no file grows any more. Otherwise "
            "the line waits for its newline, or until nobody has written to the file for a day.",
        )
        parser.add_argument(
            "--follow",
            action="store_true",
            help="Keep running: copy lines that are added to files, even if the files are rotated, and copy "
            "new files. SIGTERM and Ctrl-C end the command. It waits while Redis is away.",
        )
        parser.add_argument(
            "--forget",
            type=_days,
            metavar="DAYS",
            help="Afterwards, forget all files of the job that no copylogs has seen for this many days (at "
            "least 1). If such a file comes back, it is copied again.",
        )
        parser.add_argument("--no-progress", action="store_true", help="Report only problems and the result.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["follow"] and "-" in options["paths"]:
            raise WrongUsage("--follow cannot be used with standard input, which is read to its end anyway.")
        if options["follow"] and options["complete"]:
            raise WrongUsage("--complete and --follow cannot be used together; leave out one of them.")
        if options["follow"] and options["forget"]:
            raise WrongUsage("--forget needs files that have an end; leave out --follow.")
        links: list[str] = []
        files = [] if options["follow"] else list(find_files(options["paths"], tell=links.append))
        self._progress = Progress(self.stdout, sum(map(_size, files)))
        copier = self._copier(options)
        for link in links:
            copier.say_left_out(link)
        began_at = time.monotonic()
        try:
            with _interrupted_by_signals():
                if options["follow"]:
                    _follow(copier, options["paths"])
                outcomes = [copier.copy(file) for file in files]
                forgotten = copier.stream.forget(options["forget"] * 86_400) if options["forget"] else 0
        except KeyboardInterrupt:
            raise CommandError("Stopped. Run the command again to continue.", returncode=1) from None
        except (ExtraNotInstalled, RedisUnavailable) as error:
            raise CommandError(
                f"{error} Run the command again to continue after the copied part.", returncode=2
            ) from None
        finally:
            self._progress.end()
        self.stdout.write(_summary(copier, outcomes.count("known"), time.monotonic() - began_at))
        if waiting := [file for file, outcome in zip(files, outcomes, strict=True) if outcome == "waiting"]:
            self.stdout.write(_waiting(waiting))
        if options["forget"]:
            self.stdout.write(f"Forgotten files: {forgotten:,}.")
        if copier.problems:
            raise CommandError(
                f"Problems: {copier.problems:,}. Everything that could be read is copied.", returncode=1
            )

    def _copier(self, options: dict[str, Any]) -> Copier:
        def tell(problem: Problem) -> None:
            self._progress.end()
            self.stderr.write(str(problem))

        def say(what: str) -> None:
            self._progress.end()
            self.stderr.write(what)

        def show() -> None:
            if not options["no_progress"]:
                self._progress.tell(copier.taken, copier.lines)

        try:
            stream = LogStream(options["job"], limit=options["limit"])
            copier = Copier(
                stream,
                size=options["chunk"],
                format=options["format"],
                patience=math.inf if options["follow"] else PATIENCE,
                complete=options["complete"],
                tell=tell,
                say=say,
                progress=show,
            )
        except (InvalidValue, InvalidName) as error:
            raise WrongUsage(str(error)) from None
        return copier


@contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """Make signals to stop act as Ctrl-C. In other threads than the main one, which get no signals, do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [(each, signal.signal(each, signal.default_int_handler)) for each in STOPPING]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _follow(copier: Copier, paths: Sequence[str]) -> None:
    """Follow files until a signal arrives. The rest is copied when the command runs again."""
    follower = Follower(copier, paths)
    with closing(follower), suppress(KeyboardInterrupt):
        while True:
            follower.look()
            time.sleep(PAUSE)


def _waiting(files: Sequence[str]) -> str:
    """Return a text about files whose last line is not copied yet."""
    names = [each.replace("\n", "?") for each in files[:_NAMED]]
    if more := len(files) - len(names):
        names.append(f"{more:,} more")
    return (
        f"Last lines without a newline, not copied yet: {len(files):,} ({', '.join(names)}). Each waits "
        "for its newline, or until nobody has written to its file for a day; --complete copies it at once."
    )


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = math.nan
    if not 1 <= days < math.inf:
        raise ArgumentTypeError(f"{text} is not a number of days, from 1 on")
    return days


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:  # the copy reports why
        return 0


def _summary(copier: Copier, known: int, seconds: float) -> str:
    rate = f"{copier.lines / max(seconds, 1e-6):,.0f} lines/s"
    said = (
        f"{copier.lines:,} lines, {copier.bytes:,} bytes in {copier.chunks:,} chunks; {seconds:.1f} s, {rate}"
    )
    return f"{said}; files copied before: {known:,}" if known else said
