"""Tasks under which a worker has died are suspects: a worker starts few of them at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redis import Redis

from components.services.queues import Claimed, Consumer
from components.services.queues.worker.runs import Run, ServerClock
from components.services.queues.worker.suspects import MOST, PUT_OFF, Suspects
from components.services.queues.worker.worker import Worker
from tests import tasks
from tests.fixtures.worker import NOTE, WAIT, MakeWorker, counts, push, reaches
from tests.support.queues import claim, end_lease, found, ids
from tests.support.waiting import eventually


def dead_under_them(redis: Redis, number: int, crashes: int = 1, name: str = NOTE) -> list[str]:
    """So many tasks, of each of which *crashes* workers have died."""
    pushed = push(name, number)
    for _crash in range(crashes):
        claim(Consumer(), number)
        end_lease(redis, *pushed)
    return pushed


def suspect(crashes: int) -> Claimed:
    """Claimed after so many workers have died under it."""
    run = f"1 running token {crashes + 1} {crashes} 0 0 0 0 0 worker"
    return Claimed("id", "default", "token", crashes + 1, b"", run.encode(), b"")


def begun(claimed: Claimed, at: float | None) -> Run:
    run = Run(claimed, Consumer(), ServerClock())
    run.started_at = at
    return run


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("crashes", "max_crashes", "together"),
    [(0, 3, 2 * MOST), (1, 3, MOST), (2, 3, 1), (1, 2, 1), (2, 9, MOST // 5)],
)
def test_the_oftener_workers_have_died_the_fewer_suspects_run_together(
    redis: Redis, crashes: int, max_crashes: int, together: int
) -> None:
    pushed = dead_under_them(redis, 2 * MOST, crashes)
    suspects = Suspects(max_crashes)

    admitted = [task for task in claim(Consumer(), 2 * MOST) if suspects.refused_for(task) is None]

    assert ids(admitted) == pushed[:together]


def test_there_is_room_again_when_the_latest_have_ended_or_run_for_a_moment() -> None:
    suspects = Suspects(max_crashes=9)
    first = [suspect(crashes=2) for _ in range(MOST // 5)]
    second, third, late = (suspect(crashes=2) for _ in range(3))
    assert [suspects.refused_for(each) for each in first] == [None] * len(first)
    suspects.add(young := begun(first[0], at=None))

    suspects.look({first[0]: young})
    assert suspects.refused_for(late) == 0

    suspects.look({})
    assert suspects.refused_for(second) is None
    suspects.add(old := begun(second, at=0.0))

    suspects.look({second: old})
    assert suspects.refused_for(third) is None


@pytest.mark.parametrize(("crashes", "max_crashes"), [(2, 3), (1, 2), (3, 9)])
def test_while_one_runs_that_shall_be_alone_other_suspects_are_put_off_until_it_has_ended(
    crashes: int, max_crashes: int
) -> None:
    suspects, alone = Suspects(max_crashes), suspect(crashes)
    assert suspects.refused_for(alone) is None
    suspects.add(run := begun(alone, at=0.0))

    suspects.look({alone: run})
    assert [suspects.refused_for(suspect(other)) for other in (1, crashes, 0)] == [PUT_OFF, PUT_OFF, None]
    assert suspects.are_waiting
    assert not suspects.are_for_others

    suspects.look({})
    assert suspects.refused_for(suspect(crashes)) is None


@pytest.mark.parametrize(("crashes", "max_crashes"), [(2, 3), (3, 9)])
def test_one_that_shall_be_alone_is_put_off_until_no_other_suspect_runs(
    crashes: int, max_crashes: int
) -> None:
    suspects, other = Suspects(max_crashes), suspect(crashes=1)
    assert suspects.refused_for(other) is None
    suspects.add(run := begun(other, at=0.0))

    suspects.look({other: run})
    assert suspects.refused_for(suspect(crashes)) == PUT_OFF

    suspects.look({})
    assert suspects.refused_for(suspect(crashes)) is None


def test_a_worker_that_runs_one_alone_leaves_others_to_other_workers_and_runs_other_tasks(
    redis: Redis, make_worker: MakeWorker, start: Callable[[Worker], Worker]
) -> None:
    pushed = dead_under_them(redis, 2, crashes=2, name=WAIT)
    for _worker in range(2):
        start(make_worker(concurrency=2))

    def holders() -> set[str]:
        return {info.worker_ids[-1] for id in pushed if (info := found(id)).state == "running"}

    assert eventually(lambda: len(holders()) == 2)
    push(NOTE, 20)
    assert reaches(running=2, successful=20)
    tasks.gate.set()
    assert reaches(successful=22)


def test_a_burst_ends_when_the_suspects_have_run_too(redis: Redis, make_worker: MakeWorker) -> None:
    dead_under_them(redis, 3, crashes=2)
    make_worker(concurrency=3, burst=True).run()

    assert counts() == {"successful": 3}
