"""Chunks of logs: appended within a limit, claimed, counted exactly once, whoever dies."""

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import (
    AggregationNotFound,
    ChunkNotFound,
    ChunkTooLarge,
    CopiedElsewhere,
    InvalidName,
    InvalidValue,
    LogsFull,
    UnknownFormat,
)
from components.kit.client import get_client
from components.services.logs import Aggregation, Copier, LogStream, look_at
from components.services.logs.keys import JobKeys
from components.services.logs.lines import Columns
from components.testing import redis_at
from tests.support.counting_logs import worker
from tests.support.logs import (
    append,
    blocks,
    bytes_in_flight,
    count_all,
    fill,
    ids,
    joined,
    let_leases_pass,
    lines,
    stream,
)
from tests.support.restricted import operator
from tests.support.snapshots import snapshot
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("redis")

TABLES = {"country:2011-10-10": {"US": 3, "DE": 1}}


def room_for(chunks: int) -> int:
    """A limit that so many chunks fit in, and no more."""
    with_room = stream(job="measured")
    append(with_room, 0)
    return round(with_room.status().bytes * (chunks + 0.5))


def test_a_chunk_is_claimed_as_it_was_appended_once_and_in_its_order() -> None:
    append(stream(), 0)
    with pytest.raises(CopiedElsewhere, match=f"up to byte {blocks(1)[0].end}"):
        append(stream(), 2)
    for number in (0, 1):  # another producer of the file stores it once
        append(stream(), number)

    consumer = joined().consumer()
    first, second = consumer.claim()

    assert consumer.read(second) == blocks(2)[1].data
    assert (second.file, second.start, second.end) == ("access.log", first.end, blocks(2)[1].end)
    assert (second.line, second.lines, second.tries) == (11, 10, 1)


def test_chunks_wait_for_the_first_aggregation_and_go_when_all_have_counted_them(redis: Redis) -> None:
    fill(stream(), 3)
    joined("one").leave()
    one, other = joined("one").consumer(), joined("other").consumer()

    assert count_all(one) == 3
    assert stream().status().chunks == 3
    late = joined("late").consumer()
    other.flush(other.claim(2), {})
    late.flush(late.claim(1), {})
    assert (count_all(other), count_all(late)) == (1, 2)

    status = stream().status()
    assert (status.chunks, status.bytes, status.lines, status.raw_bytes) == (0, 0, 30, blocks(3)[2].end)
    assert redis.keys("*:chunk:*") == redis.keys("*:counted") == []


def test_what_is_refused_for_lack_of_room_leaves_nothing(redis: Redis) -> None:
    limit = room_for(2)
    append(stream(limit), 0)
    append(LogStream("default", limit=limit), 1)
    assert redis.lpop(JobKeys("default").room) == b"1"  # one who found room wakes the next
    before = snapshot(redis)

    with pytest.raises(LogsFull):
        append(stream(limit), 2, wait=0)

    assert snapshot(redis) == before
    assert bytes_in_flight(redis) == stream().status().bytes <= limit


def test_a_producer_that_waits_is_woken_when_a_chunk_is_counted(redis: Redis) -> None:
    limit = room_for(1)
    to, consumer = stream(limit), joined().consumer()
    assert consumer.claim() == []
    assert not consumer.wait(0.01)
    append(to, 0)
    assert consumer.wait(3)
    [chunk] = consumer.claim()
    redis.delete(JobKeys("default").room)
    appended = threading.Event()
    producer = threading.Thread(target=lambda: (append(to, 1), appended.set()))
    producer.start()
    assert eventually(lambda: get_client().info("clients")["blocked_clients"] == 1)

    consumer.flush([chunk], {})

    assert appended.wait(3)  # it looks by itself only after four
    producer.join()


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda: append(stream(10), 0), ChunkTooLarge),
        *((lambda limit=limit: LogStream(limit=limit), InvalidValue) for limit in (0, -1, 1.5, True, "1")),
        (lambda: LogStream(""), InvalidName),
        (lambda: Aggregation(""), InvalidName),
        (lambda: Aggregation("geo", lease=0), InvalidValue),
        (lambda: Aggregation("geo", tries=0), InvalidValue),
        *((lambda limit=limit: joined().consumer().claim(limit), InvalidValue) for limit in (0, 501)),
        *(
            (lambda count=count: flush_count(count), InvalidValue)
            for count in (1.5, True, "3", 2**53, -(2**53))
        ),
    ],
)
def test_what_cannot_be_is_refused(act: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error):
        act()


def flush_count(count: object) -> None:
    fill(stream(), 1)
    consumer = joined().consumer()
    consumer.flush(consumer.claim(), {"lines": {"all": count}})  # type: ignore[dict-item]


def test_chunks_needed_only_by_an_aggregation_that_left_are_removed(redis: Redis) -> None:
    fill(stream(), 3)
    leaving, other = joined("leaving"), joined("other").consumer()
    other.flush(other.claim(2), {})

    leaving.leave()
    leaving.leave()

    assert stream().status().chunks == 1
    assert bytes_in_flight(redis) == stream().status().bytes
    with pytest.raises(AggregationNotFound, match="'leaving'"):
        leaving.consumer().claim()
    leaving.join()
    assert len(leaving.consumer().claim()) == 1  # joins again, and counts anew what is there


def test_a_worker_that_beats_keeps_its_chunks(redis: Redis) -> None:
    fill(stream(), 2)
    aggregation = joined()
    consumer = aggregation.consumer()
    chunks = consumer.claim()
    let_leases_pass(redis, aggregation)

    assert consumer.beat() == frozenset()
    assert aggregation.consumer().claim() == []
    assert consumer.held.keys() == {each.id for each in chunks}
    let_leases_pass(redis, aggregation, [chunks[0].id])
    other = aggregation.consumer()
    other.claim()
    assert consumer.beat() == {chunks[0].id}
    assert consumer.held.keys() == {chunks[1].id}
    for each in (consumer, other):
        each.release()
        assert each.held == {}
    again = aggregation.consumer().claim()
    assert sorted(each.tries for each in again) == [1, 2]  # what was given back was no try


def crc64(data: bytes) -> int:
    """The sum at the end of what DUMP returns."""
    found = 0
    for byte in data:
        found ^= byte
        for _bit in range(8):
            found = found >> 1 ^ (found & 1) * 0x95AC9329AC4BC9B5
    return found


def test_a_chunk_that_a_clock_a_day_ahead_has_handed_out_counts_as_handed_out_now(redis: Redis) -> None:
    def instants() -> set[int]:
        [group] = redis.xinfo_stream(keys.stream, full=True)["groups"]
        return {int(group["pending"][0][2]), *(each[b"seen-time"] for each in group["consumers"])}

    fill(stream(), 1)
    aggregation, keys = joined(), JobKeys("default")
    (dead := aggregation.consumer()).claim()
    redis.set(keys.worker(dead.id), "{}")
    now, ahead = max(instants()), redis.dump(keys.stream)[:-8]
    for at in instants():
        ahead = ahead.replace(at.to_bytes(8, "little"), (at + 86_400_000).to_bytes(8, "little"))
    redis.restore(keys.stream, 0, ahead + crc64(ahead).to_bytes(8, "little"), replace=True)

    assert aggregation.consumer().claim() == []
    assert (max(instants()) < now + 60_000, redis.exists(keys.worker(dead.id))) == (True, 0)


def test_a_worker_that_claims_what_it_holds_gets_what_comes_after(redis: Redis) -> None:
    """Nothing means that nothing is left, and not that all of a page was known."""
    to, aggregation = stream(), joined()
    appended = fill(to, 4)
    consumer = aggregation.consumer()
    held = consumer.claim(2)
    let_leases_pass(redis, aggregation)

    assert ids(consumer.claim(2)) == appended[2:]
    assert consumer.claim(2) == []
    consumer.flush([*held, *(consumer.held[each] for each in appended[2:])], {})
    assert to.status().chunks == 0


def test_chunks_under_which_consumers_died_are_given_up_and_can_be_sent_again(redis: Redis) -> None:
    """They do not hide the next one."""
    [*poison, good] = fill(stream(), 3)
    aggregation = joined(tries=2)
    for count in (3, 2):
        aggregation.consumer().claim(count)
        let_leases_pass(redis, aggregation)
    consumer = aggregation.consumer()

    assert ids(consumer.claim(2)) == [good]
    assert consumer.claim(2) == []
    assert sorted(each for each, _at in aggregation.dead()) == poison
    assert Aggregation("else").dead() == []
    assert aggregation.resend([*poison, "1-1"]) == 2
    [status] = look_at("default").aggregations
    assert (status.claimed, status.waiting, status.dead) == (1, 2, 0)
    assert [each.id for each in status.workers] == [consumer.id]  # and nobody holds the two
    assert {(each.id, each.tries) for each in consumer.claim(2)} == {(each, 1) for each in poison}
    assert aggregation.dead() == []


def test_a_chunk_that_was_given_up_can_be_discarded(redis: Redis) -> None:
    fill(stream(), 2)
    aggregation, other = joined(tries=1), joined("other")
    aggregation.consumer().claim()
    let_leases_pass(redis, aggregation)
    aggregation.consumer().claim()
    [first, second] = [each for each, _at in aggregation.dead()]
    redis.delete(JobKeys("default").chunk(second))  # evicted
    redis.hset(JobKeys("default").state, "bytes", bytes_in_flight(redis))
    consumer = other.consumer()
    consumer.flush([each for each in consumer.claim() if each.id == first], {})

    assert aggregation.discard([first, second, "1-1"]) == 2

    assert aggregation.dead() == []
    assert stream().status().chunks == 1
    assert bytes_in_flight(redis) == stream().status().bytes
    consumer.flush(consumer.held.values(), {})
    assert (stream().status().bytes, stream().status().chunks) == (0, 0)


def test_lines_that_are_gone_or_of_a_later_release_are_reported(redis: Redis) -> None:
    fill(stream(), 1)
    consumer = joined().consumer()
    [chunk] = consumer.claim()
    redis.set(JobKeys("default").chunk(chunk.id), b"\x00newer")

    with pytest.raises(UnknownFormat):
        consumer.read(chunk)
    redis.delete(JobKeys("default").chunk(chunk.id))
    with pytest.raises(ChunkNotFound, match=r"access\.log, from byte 0"):
        consumer.read(chunk)


LINES = 2_000
SIZE = 2_000


class Filling:
    """A callback that counts lines, and fills the memory of Redis when it has the first."""

    count = 0

    def block(self, columns: Columns) -> None:
        if not self.count:
            operator().config_set("maxmemory", 1)
        self.count += len(columns)

    def flush(self) -> Mapping[str, Mapping[str, int]]:
        count, self.count = self.count, 0
        return {"lines": {"all": count}}


def test_workers_make_room_where_memory_is_full(tmp_path: Path) -> None:
    """They end when it is not any more, since an end needs a little."""
    (tmp_path / "log").write_bytes(lines(0, LINES) + b"junk\n")
    Copier(LogStream(), size=SIZE).copy(tmp_path / "log")
    counting = worker(Filling, name="lines")

    def make_room() -> bool:
        is_counted = eventually(lambda: not LogStream().status().chunks)
        operator().config_set("maxmemory", 0)
        return is_counted

    with ThreadPoolExecutor() as pool:
        room = pool.submit(make_room)
        assert counting.run() == 0
        assert room.result()
    aggregation = Aggregation("lines")
    assert aggregation.table("lines") == {"all": LINES}
    assert aggregation.table("totals:lines")["format"] == 1
    assert [sample.head for sample, _at in aggregation.samples()] == ["junk"]


def test_lines_lost_in_a_power_cut_are_copied_and_counted_again(tmp_path: Path) -> None:
    """With "everysec" the last second is lost: both what was copied then, and what was counted."""
    log, written, taken = tmp_path / "log", list[int](), iter(range(10_000))
    log.write_bytes(lines(0, LINES))

    def count() -> bool:
        """Count how often some lines come; return whether there were any."""
        if not (chunks := consumer.claim(3)):
            return False
        found = b"".join(map(consumer.read, chunks)).decode().splitlines()
        consumer.flush(chunks, {"lines": dict.fromkeys(found, 1)})
        return True

    def lately() -> Path:
        """Return the file that has what was done lately."""
        files = sorted(server.folder.rglob("*.aof"))
        return [each for each in files if not each.name.endswith(".base.aof")][-1]

    def cut_power() -> None:
        match next(taken):
            case 12:
                count()
                written.append(lately().stat().st_size)
            case 20:
                count()  # the very chunks that it is going to have again
                server.kill()
                os.truncate(lately(), written[0] + 100)
                server.start()

    with EmbeddedServer(tmp_path / "redis", appendfsync="everysec") as server, redis_at(server.url):
        aggregation = joined()
        consumer = aggregation.consumer()
        copier = Copier(LogStream(), size=SIZE, progress=cut_power)

        assert copier.copy(log) == "copied"
        assert copier.lines > LINES
        while count() or LogStream().status().chunks:
            let_leases_pass(operator(), aggregation)  # what a restart has made of them is claimed anew
        assert aggregation.table("lines") == dict.fromkeys(lines(0, LINES).decode().splitlines(), 1)
        assert LogStream().status().bytes == bytes_in_flight(operator()) == 0
        assert LogStream().status().lines == LINES
