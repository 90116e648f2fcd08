from __future__ import annotations

import pytest

from components.services.queues import Consumer, Finished, NewTask, TaskQueue, execute_later


@pytest.fixture
def queue(redis):
    return TaskQueue()


def claim(consumer, want=1, queues=("default",)):
    return consumer.advance(consumer.request(dict.fromkeys(queues, want), want)).claimed


def test_a_pushed_task_is_claimed_once(queue):
    task_id = queue.push("tests.tasks.echo", [1], {"value": 2})

    first, second = claim(Consumer()), claim(Consumer())

    assert [task.id for task in first] == [task_id]
    assert second == []
    info = first[0].read()
    assert (info.name, info.args, info.kwargs) == ("tests.tasks.echo", [1], {"value": 2})
