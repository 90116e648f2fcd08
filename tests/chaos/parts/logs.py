"""Logs: each line counts once in each table, whoever copies and counts it, and nothing is left in flight."""

import gzip
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from django.core.management import call_command

from components.kit.client import get_client
from components.services.logs import PLACES, Aggregation, Chunk, Consumer
from components.services.logs.keys import JobKeys
from tests.chaos.players import Notes, Player, Role, insist, note
from tests.support.geo import city, import_networks

JOB, LEASE = "chaos", 1
FILES, LINES = 6, 20_000  # of each
DAYS = ("2011-10-09", "2011-10-10")
#: By address: where it lives.
WORLD = {
    "16.0.0.1": ("US", "US/A", "US/A/Town"),
    "17.1.2.3": ("DE", "DE", "DE"),
    "2001:db8::1": ("FR", "FR/B", "FR/B/Ville"),
    "99.9.9.9": ("unknown", "unknown", "unknown"),
}
NETWORKS = {
    "16.0.0.0/8": city("US", "A", "Town"),
    "17.0.0.0/8": city("DE"),
    "2001:db8::/32": city("FR", "B", "Ville"),
}
JUNK = (
    b"\n",
    b"no-blank-in-here\n",
    b"256.1.1.1 2011-10-10 13:55:36 x\n",
    b"16.0.0.1 2011-02-30 13:55:36 x\n",
)


def prepare(folder: Path) -> None:
    """Write the logs, plain and compressed; the last line of each file has no end."""
    import_networks(folder, NETWORKS)
    Aggregation(PLACES, job=JOB, lease=LEASE).join()
    (folder / "logs").mkdir()
    for number in range(FILES):
        random = Random(number)
        lines, counts = list[bytes](), Counter[str]()
        for _ in range(LINES):
            if random.random() < 0.01:
                lines.append(random.choice(JUNK))
                continue
            day, address = random.choice(DAYS), random.choice(list(WORLD))
            lines.append(f"{address} {day} {random.randrange(10, 24)}:00:00 bought a thing\n".encode())
            counts[f"{day} {address}"] += 1
        lines.append(f"16.0.0.1 {DAYS[0]} 23:59:59 the last".encode())
        counts[f"{DAYS[0]} 16.0.0.1"] += 1
        note("lines", number=len(lines), counts=counts)
        data = b"".join(lines)
        path = folder / "logs" / f"visits-{number}.log"
        path.write_bytes(data) if number % 2 else path.with_suffix(".log.gz").write_bytes(
            gzip.compress(data, 1)
        )


def copy(player: Player) -> None:
    limits = ("--limit", "1000000", "--chunk", "65536", "--complete", "--no-progress")
    call_command("copylogs", str(player.folder / "logs"), "--job", JOB, *limits, verbosity=0)
    note("copied")


def count(player: Player) -> None:
    """Count slowly, and at times flush when the lease is over, as if stopped at the worst moment."""
    read: Callable[[Consumer, Chunk], bytes] = Consumer.read
    flush: Callable[..., None] = Consumer.flush

    def slow(consumer: Consumer, chunk: Chunk) -> bytes:
        player.nap(0.6)
        return read(consumer, chunk)

    def late(consumer: Consumer, *args: Any) -> None:
        player.nap(1.5 * LEASE if player.random.random() < 0.1 else 0)
        flush(consumer, *args)

    Consumer.read, Consumer.flush = slow, late  # type: ignore[method-assign]
    call_command("aggregatelogs", "--job", JOB, "--lease", str(LEASE), verbosity=0)


ROLES = {"copier": Role(2, copy), "aggregator": Role(3, count, is_daemon=True)}


def is_settled() -> bool:
    """Whether nothing is in flight; what was given up is sent again."""
    aggregation = Aggregation(PLACES, job=JOB)
    if dead := [chunk for chunk, _at in insist(lambda: list(aggregation.dead(1_000)))]:
        insist(lambda: aggregation.resend(dead))
    redis: Any = get_client()
    return not dead and not redis.xlen(JobKeys(JOB).stream)


def judge(notes: Notes) -> Iterator[str]:
    redis: Any = get_client()
    keys = JobKeys(JOB)
    expected: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for each in notes["lines"]:
        for of, number in each["counts"].items():
            day, address = of.split()
            for level, id_ in zip(("country", "region", "city"), WORLD[address], strict=True):
                expected[f"daily:{level}:{day}"][id_] += number
            expected["days"][day] += number
            expected[f"totals:{PLACES}"]["counted"] += number
        expected[f"totals:{PLACES}"]["lines"] += each["number"]
    for table, counts in expected.items():
        found = {member.decode(): int(number) for member, number in redis.hgetall(keys.counts(table)).items()}
        wrong = {member for member in counts.keys() | found.keys() if counts.get(member) != found.get(member)}
        if table.startswith("totals"):
            wrong &= counts.keys()  # the reasons of the others are not counted here
        for member in sorted(wrong)[:5]:
            yield f"{table}: {member!r} is {found.get(member)} instead of {counts.get(member)}."
    for field, number in (
        ("lines", sum(each["number"] for each in notes["lines"])),
        ("bytes", 0),
        ("chunks", 0),
    ):
        if int(redis.hget(keys.state, field) or 0) != number:
            yield f"{field} is {redis.hget(keys.state, field)} instead of {number}."
    if left := redis.keys(keys.chunk("*")):
        yield f"{len(left)} chunks are left."
    if left := redis.hlen(keys.counted):
        yield f"{left} chunks are noted to be counted by some."


def figures(notes: Notes) -> str:
    return f"{sum(each['number'] for each in notes['lines'])} lines"
