"""Locks by name: what is granted, refused, noted, told."""

import asyncio
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.cache import caches
from redis import Redis
from redis.exceptions import LockError, LockNotOwnedError

from components.conf import conf
from components.embedded import EmbeddedServer
from components.exceptions import InvalidName, InvalidValue, LockLost, LockNotAcquired, RedisNotPrivate
from components.kit import leases as renewals
from components.kit.client import get_async_client
from components.kit.leases import Holder
from components.services.locks import AsyncLock, Lock, LockReader, alock, alocks, lock, locks, named
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from components.testing import redis_at
from tests import tasks
from tests.support.snapshots import snapshot
from tests.support.waiting import eventually

AWKWARD = ["a b\nc", "naïve ☂", "%7Ba%7D", "x" * 500, "{tag}:rest", "{a}{b}", "{a%2F}", "{", "a{b"]


pytestmark = pytest.mark.usefixtures("no_heartbeats")


def end(redis: Redis, name: str) -> None:
    """Let the time of the lock *name* be over."""
    assert redis.delete(key_of(name))


def acquired(name: str = "a", **options: object) -> Lock:
    held = lock(name, **options)  # type: ignore[arg-type]
    assert held.acquire(blocking=False)
    return held


@pytest.mark.parametrize(
    ("options", "seconds"), [({}, 30), ({"timeout": 500}, 500), ({"timeout": None}, math.inf)], ids=str
)
def test_it_ends_with_its_time(redis: Redis, options: dict[str, float | None], seconds: float) -> None:
    held = acquired(**options)

    left = redis.pttl(key_of("a"))
    assert left == -1 if seconds == math.inf else seconds - 20 < left / 1000 <= seconds
    assert held.remaining == seconds or seconds - 20 < held.remaining <= seconds


def test_the_fence_grows_with_each_holder_whatever_redis_has_forgotten(redis: Redis) -> None:
    fences = []
    for lose in (lambda: None, lambda: None, redis.flushall):
        lose()
        with lock("a") as held:
            fences.append(held.fence)
    ahead = fences[-1] + 10**15
    redis.zadd(LockKeys.named("a").held, {"": -ahead})  # as if the clock had been ahead
    for _ in range(2):
        with lock("a") as held:
            fences.append(held.fence)

    assert fences == sorted(set(fences))
    assert fences[-2:] == [ahead + 1, ahead + 2]
    with pytest.raises(LockError):
        _ = held.fence


def test_a_lost_lock_is_reported_at_release_and_leaves_its_next_holder_alone(redis: Redis) -> None:
    held, other = acquired(), lock("a")
    end(redis, "a")
    other.acquire()

    with pytest.raises(LockLost) as caught:
        held.release()

    assert isinstance(caught.value, LockNotOwnedError)
    assert caught.value.lock_name == key_of("a")
    with pytest.raises(LockError) as again:
        held.release()
    assert not isinstance(again.value, LockNotOwnedError)
    assert other.owned()


def test_an_inner_error_is_not_hidden_by_the_loss_of_the_lock(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    def work() -> None:
        with lock("a"):
            end(redis, "a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()

    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_ensure_held_asks_redis(redis: Redis) -> None:
    held = acquired()
    held.ensure_held()
    lost = held.lost
    assert not lost.is_set()
    end(redis, "a")

    with pytest.raises(LockLost):
        held.ensure_held()

    assert lost.is_set()
    assert held.remaining == 0


def test_a_negative_extension_shortens_or_loses_the_lock(redis: Redis) -> None:
    held = acquired(timeout=3_000)

    assert held.extend(-2_000)
    assert 900 < held.remaining <= 1_000
    assert held.extend(-2_000)
    assert held.remaining == 0
    with pytest.raises(LockLost):
        held.release()
    assert lock("a").acquire(blocking=False)


@pytest.mark.parametrize(
    ("seconds", "waits"), [(-1, False), (-math.inf, False), (0, False), (math.inf, True), (10**12, True)]
)
def test_patience_may_be_less_than_none_or_without_end(redis: Redis, seconds: float, waits: bool) -> None:
    assert lock("a")._patience(None, seconds)[0] is waits
    assert lock("a", blocking_timeout=seconds).acquire()


@pytest.mark.parametrize("token", ["", "test", "a/b/c/d/e", "a/1/c"])
def test_other_tokens_are_unknown(token: str) -> None:
    assert Holder.of(token) == Holder()


@pytest.mark.parametrize("name", AWKWARD, ids=ascii)
def test_a_lock_may_be_called_anything_and_be_at_any_key(redis: Redis, name: str) -> None:
    with lock(name) as held, Lock(redis, name, timeout=100) as own:
        [by_name] = [info for info in LockReader().held() if info.key == held.name]
        assert (by_name.name, by_name.token.encode()) == (name, held.local.token)
        assert redis.get(name) == own.local.token != held.local.token
        assert not Lock(redis, name.encode()).acquire(blocking_timeout=0.005)

    assert not redis.exists(name)
    assert LockReader().count() == 0


@pytest.mark.parametrize("key", ["}", "{}", "a{}b", "{}{a}", "}{"])
def test_a_key_whose_other_keys_lie_in_another_slot_is_refused_on_a_cluster(key: str) -> None:
    LockKeys(key)
    with pytest.raises(InvalidName):
        LockKeys(key, on_cluster=True)


def test_coroutines_have_the_same(redis: Redis) -> None:
    async def main() -> None:
        async with alock("a", owner="jill") as held:
            assert held.fence
            assert await held.owned()
            assert not await alock("a").acquire(blocking=False)
            assert not lock("a").acquire(blocking=False)
            with pytest.raises(LockNotAcquired):
                await alock("a", blocking_timeout=0.01).__aenter__()
            await held.ensure_held()
            assert await held.extend(10)
            assert 30 < held.remaining <= 40
            assert await held.reacquire()
            assert 10 < held.remaining <= 30
            [info] = await asyncio.to_thread(LockReader().held)
            assert info.holder.owner == "jill"
        assert not await held.locked()
        await held.acquire()
        await asyncio.to_thread(end, redis, "a")
        for act in (held.ensure_held, lambda: held.extend(5), held.reacquire, held.release):
            with pytest.raises(LockLost):
                await act()

    asyncio.run(main())


@pytest.fixture
def own(redis: Redis) -> Lock:
    """A held lock at a key of the test's own."""
    own = Lock(redis, "a", timeout=100)
    assert own.acquire(blocking=False)
    return own


@contextmanager
def unchanged(redis: Redis) -> Iterator[None]:
    before = snapshot(redis)
    yield
    assert snapshot(redis) == before


OPTIONS = [
    *(("timeout", wrong) for wrong in (0, 0.0004, -1, math.inf, 10**12, math.nan, "5", True)),
    *(("sleep", wrong) for wrong in (-1, math.inf, 10**12, math.nan, "5", True)),
    *(("blocking_timeout", wrong) for wrong in (math.nan, "5", True)),
]
MISTAKES: dict[str, tuple[type[Exception], Callable[[Redis, Lock], Any]]] = {
    **{f"name {name!r:.9}": (InvalidName, lambda redis, held, name=name: Lock(redis, name))
       for name in ("", "x" * 501, b"\xff", "\ud800", ["a"], True, None)},
    **{f"named {name!r:.9}": (InvalidName, lambda redis, held, name=name: lock(name))
       for name in ("", "x" * 501, 7, None, "\ud800")},
    **{f"{option} {wrong!r}": (InvalidValue, lambda redis, held, given=(option, wrong): lock("b", **dict([given])))
       for option, wrong in OPTIONS},
    **{f"extend {wrong!r}": (InvalidValue, lambda redis, held, wrong=wrong: held.extend(wrong))
       for wrong in (math.nan, math.inf, -math.inf, True, "1", None, 10**12)},
    "no names": (InvalidName, lambda redis, held: locks([])),
    "a name for names": (InvalidName, lambda redis, held: locks("ab")),
    "NaN patience": (InvalidValue, lambda redis, held: held.acquire(blocking_timeout=math.nan)),
    "NaN sleep": (InvalidValue, lambda redis, held: held.acquire(sleep=math.nan)),
    "negative sleep": (InvalidValue, lambda redis, held: held.acquire(sleep=-1)),
    "renewal of what has no end": (ValueError, lambda redis, held: Lock(redis, "b", auto_renewal=True)),
    "fair polling": (ValueError, lambda redis, held: Lock(redis, "b", fair=True, sleep=1)),
    "another's": (LockError, lambda redis, held: Lock(redis, "a").release()),
    "another's time": (LockError, lambda redis, held: Lock(redis, "a", 5).extend(5)),
    "another's time anew": (LockError, lambda redis, held: Lock(redis, "a", 5).reacquire()),
    "another's fence": (LockError, lambda redis, held: Lock(redis, "a").fence),
    "another's end": (LockError, lambda redis, held: Lock(redis, "a").remaining),
    "another's loss": (LockError, lambda redis, held: Lock(redis, "a").lost),
    "nothing to hold": (LockError, lambda redis, held: Lock(redis, "a").ensure_held()),
}  # fmt: skip


@pytest.mark.parametrize(("error", "mistake"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_and_changes_nothing(
    redis: Redis, own: Lock, error: type[Exception], mistake: Callable[[Redis, Lock], Any]
) -> None:
    with unchanged(redis), pytest.raises(error) as caught:
        mistake(redis, own)

    assert not isinstance(caught.value, LockNotOwnedError)
    assert own.owned()


def test_what_redis_py_takes_by_position_is_taken(redis: Redis) -> None:
    assert lock("a").acquire(False)
    assert not lock("a").acquire(True, True, 0.05)
    assert not lock("a", blocking=False).acquire(0.1)
    assert not lock("a").acquire(None, False)


def test_a_lock_decorates_functions_also_in_a_test_without_redis(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(named, "get_client", refuse)
        decorate = lock("a", blocking_timeout=0)
        with pytest.raises(RedisNotPrivate), decorate:
            ...
        with pytest.raises(RedisNotPrivate):
            decorate.acquire()

    @decorate
    def held(value: int) -> int:
        assert not lock("a", blocking=False).acquire()
        return value

    @decorate
    async def awaited(value: int) -> int:
        return held(value)

    assert [held(1), held(value=2)] == [1, 2]
    with pytest.raises(LockNotAcquired):
        asyncio.run(awaited(3))
    with pytest.raises(TypeError, match="a lock has no effect"):
        lock("a")(generate)
    with pytest.raises(TypeError, match="below @task"):
        lock("a")(tasks.note)


def generate() -> Iterator[int]:
    yield 1


def refuse() -> Any:
    raise RedisNotPrivate


def test_coroutines_are_told_the_same(redis: Redis) -> None:
    async def main() -> None:
        client = get_async_client()
        for options in ({"timeout": 0}, {"timeout": math.nan}, {"sleep": -1}, {"blocking_timeout": math.nan}):
            with pytest.raises(InvalidValue):
                AsyncLock(client, "a", **options)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            Lock(client, "a")  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            AsyncLock(redis, "a")
        unheld = AsyncLock(client, "a", timeout=5)
        for act in (unheld.release, lambda: unheld.extend(5), unheld.reacquire, unheld.ensure_held):
            with pytest.raises(LockError):
                await act()
        with pytest.raises(InvalidValue):
            await unheld.acquire(blocking_timeout=math.nan)
        async with unheld as held:
            with pytest.raises(InvalidValue):
                await held.extend(math.nan)
            assert await held.owned()

    asyncio.run(main())
    assert not redis.exists("a")


NAMES = ["c", "a", "b"]


def free() -> list[str]:
    return [name for name in sorted(NAMES) if not lock(name).locked()]


def fence_of(redis: Redis, name: str) -> int:
    return -int(redis.zscore(LockKeys.named(name).held, b"\xff" + key_of(name).encode()) or 0)


def test_all_are_held_and_all_released(redis: Redis) -> None:
    with locks([*NAMES, "a"]) as held:
        assert free() == []
        assert held.fences == {name: fence_of(redis, name) for name in sorted(NAMES)}
        assert list(held.fences) == sorted(NAMES)
        held.ensure_held()

    assert free() == ["a", "b", "c"]


def test_none_is_held_unless_all_are_free(redis: Redis) -> None:
    kept = len(list(renewals._scheduler._kept))
    with lock("b"):
        assert not locks(NAMES).acquire(blocking=False)
        with pytest.raises(LockNotAcquired), locks(NAMES, blocking_timeout=0.05):
            pytest.fail("b is held twice")

        assert free() == ["a", "c"]
    assert len(list(renewals._scheduler._kept)) == kept


def test_two_who_name_them_in_another_order_do_not_wait_for_each_other(redis: Redis) -> None:
    def work(names: list[str]) -> int:
        done = 0
        for _ in range(15):
            with locks(names, blocking_timeout=20):
                done += 1
        return done

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, (NAMES, NAMES[::-1]))) == [15, 15]


@pytest.mark.parametrize(
    ("seconds", "left", "is_lost", "times"),
    [(6, 14_000, False, 1), (7, 3_000, False, 1), (21, 0, True, 2)],
    ids=["young", "old", "lost"],
)
def test_what_grew_old_in_the_wait_for_others_is_renewed_or_acquired_again(
    redis: Redis, seconds: int, left: int, is_lost: bool, times: int
) -> None:
    """Of a time of 20 seconds; below two thirds of it, it is renewed."""
    both = locks(["a", "b"], timeout=20)
    first = both._locks["a"]
    acquire: Callable[..., bool] = first.acquire
    calls = []

    def slowly(**options: object) -> bool:
        got = acquire(**options)
        calls.append(got)
        if len(calls) == 1:
            redis.delete(key_of("a")) if is_lost else redis.pexpire(key_of("a"), left)
            first.local.holding.valid_until -= seconds
        return got

    first.acquire = slowly

    assert both.acquire()
    assert calls == [True] * times
    both.ensure_held()
    stays = seconds == 6
    assert (redis.pttl(key_of("a")) <= 14_000) == stays
    assert (first.remaining <= 14) == stays


def test_a_loss_is_told_and_the_others_are_released(redis: Redis) -> None:
    held = locks(NAMES)
    held.acquire()
    redis.delete(key_of("b"))

    with pytest.raises(LockLost):
        held.ensure_held()
    with pytest.raises(LockLost):
        held.release()

    assert free() == ["a", "b", "c"]


def test_those_that_are_held_are_renewed_while_another_is_waited_for(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewals, "_PART", 200)
    other = lock("b", timeout=None, thread_local=False)
    other.acquire()
    several = locks(["a", "b"], timeout=10, blocking_timeout=20)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(several.acquire)
        assert eventually(lambda: redis.exists(key_of("a")))
        redis.pexpire(key_of("a"), 7_000)
        assert eventually(lambda: redis.pttl(key_of("a")) > 7_000)
        other.release()
        assert waiting.result(20)


def test_coroutines_hold_several_alike(redis: Redis) -> None:
    async def main() -> None:
        async with alocks(NAMES) as held:
            assert held.fences == {name: fence_of(redis, name) for name in NAMES}
            await held.ensure_held()
            assert not await alocks(["c", "d"]).acquire(blocking=False)
            with pytest.raises(LockNotAcquired):
                await alocks(["c", "d"], blocking_timeout=0.01).__aenter__()
        several = alocks(NAMES)
        await several.acquire()
        redis.delete(key_of("b"))
        with pytest.raises(LockLost):
            await several.release()

    asyncio.run(main())
    assert free() == ["a", "b", "c"]


@pytest.fixture
def cache(redis: Redis, server: EmbeddedServer, redis_mode: str) -> Iterator[Any]:
    """The project's cache, with our client class."""
    name = "ClusterClient" if redis_mode == "cluster" else "Client"
    with redis_at(server.url, CLIENT_CLASS=f"components.cache.{name}"):
        yield caches[conf().cache]


def test_it_is_ours_at_the_key_of_the_cache(cache: Any, redis: Redis) -> None:
    with cache.lock("report", timeout=5, version=2) as held:
        assert isinstance(held, Lock)
        assert held.fence
        assert redis.get(cache.make_key("report", version=2)) == held.local.token
        assert not cache.lock("report").locked()
    given = cache.lock("a", None, 10, 0.2, False, 3, None, False)
    assert (given.timeout, given.sleep, given.blocking) == (10, 0.2, False)
    assert (given.blocking_timeout, given.thread_local) == (3, False)
    with cache.lock("a", timeout=5, fair=True, owner="jill", raise_on_release_error=False) as held:
        assert held.fair
        assert b"/jill/" in held.local.token
