"""
Two producers copy logs that eight workers and two callbacks of one's own count, while all of them are killed and
stopped beyond their leases, replies are lost and Redis is killed; then each count is held against what was written.

The plan, and how to run it larger, is in visits/plan.py; what is promised, in visits/verdict.py.
"""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from components.embedded import EmbeddedServer
from components.services.logs import PLACES, Aggregation
from components.testing import redis_at
from tests.chaos.visits import plan, world
from tests.chaos.visits.logs import write_logs
from tests.chaos.visits.observer import Observer
from tests.chaos.visits.trouble import Trouble
from tests.chaos.visits.verdict import Verdict
from tests.commands.processes import Command
from tests.support.geo import import_networks
from tests.support.proxy import LossyProxy
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

PROGRAM = ("-m", "tests.chaos.visits.crew")
_PATIENCE = 120 + plan.LINES / 10_000  # seconds


def test_each_line_counts_once_in_each_table_whatever_happens(
    server: EmbeddedServer, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    began, cpu = time.monotonic(), processor_seconds()
    folder = tmp_path / "logs"
    folder.mkdir()
    sums = write_logs(folder, plan.LINES, plan.SEED)
    with redis_at(server.url) as client:
        import_networks(tmp_path, world.records())
        for name in (PLACES, plan.EVENTS):
            Aggregation(name, job=plan.JOB, lease=plan.LEASE).join()
        with LossyProxy(server) as proxy, Observer(server.url) as observer:
            output, done = count(server, proxy, observer, tmp_path)
        verdict = Verdict(client, sums.tables(), lines=sums.lines, raw=sums.bytes)

    refused = output.count("are no longer held")
    looks = f"{observer.looks:,}, {observer.bytes:,}, {observer.chunks}"
    seconds = f"{time.monotonic() - began:.1f}, {processor_seconds() - cpu:.1f}"
    figures = [
        ("lines, bytes", f"{sums.lines:,}, {sums.bytes:,}"),
        ("in flight: looks, most bytes, most chunks", looks),
        ("a chunk was handed out, at most", f"{observer.handed_out} times"),
        ("flushes that were refused", f"{refused}"),
        ("times that chunks were given up", f"{output.count('given up, and sent again')}"),
        ("times that another table was taken", f"{output.count('located by another table now')}"),
        ("done to them", f"{dict(done)}"),
        ("replies lost", f"{proxy.lost}"),
        ("seed", f"{plan.SEED}"),
        ("seconds, of processors", seconds),
    ]
    record_property("figures", figures)
    complaints = observer.complaints + verdict.complaints
    assert not complaints, "\n".join(complaints[:20])
    assert observer.bytes > 0.9 * plan.LIMIT, "the limit was never reached: nothing was tested"
    assert observer.handed_out > 1, "no chunk was taken over: nothing was tested"
    assert refused, "nobody was late with a flush: nothing was tested"
    assert proxy.lost


def count(
    server: EmbeddedServer, proxy: LossyProxy, observer: Observer, folder: Path
) -> tuple[str, Counter[str]]:
    """Let all be copied and counted, with trouble; what they have said, and what was done to them."""
    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.chaos.visits.settings",
        "CHAOS_SEED": f"{plan.SEED}",
        "CHAOS_LOG_LINES": f"{plan.LINES}",
    }
    with Command(proxy.url, str(folder), program=PROGRAM, **environment) as command:
        trouble = Trouble(server, proxy, observer, folder)
        trouble.make(command, within=_PATIENCE)
        copied = folder / "copied"
        assert eventually(lambda: copied.exists() or command.has_ended(), within=_PATIENCE), command.output
        (folder / "over").touch()
        assert eventually(command.has_ended, within=_PATIENCE), command.output
        assert command.exit_code() == 0, command.output
    assert "Traceback" not in command.output, command.output
    return command.output, trouble.done


def processor_seconds() -> float:
    """Of this process and of those of its children that have ended."""
    spent = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)
