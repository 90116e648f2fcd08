"""Jobs and aggregations as the pages of logs show them, and as the query of a request names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.http import Http404, HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import ControlRoomAdmin
from components.control_room.verbs import Trail
from components.exceptions import InvalidName
from components.formatting import grouped, legible, shortened
from components.services.logs import (
    DEFAULT_JOB,
    MOST_WAITING,
    PLACES,
    Aggregation,
    AggregationStatus,
    JobStatus,
    LogWorkerInfo,
    Sample,
    list_jobs,
    look_at,
)

_SAMPLES = 20  # samples on a page
#: The reasons for rejecting lines, in words. Any other reason is shown by its name.
_REASONS = {
    "empty": _("the line is empty"),
    "format": _("a field is missing"),
    "address": _("no address"),
    "date": _("no time, or a day that does not exist"),
    "late": _("the day is too long ago"),
    "future": _("the day is in the future"),
}
_NO_REASONS = ("lines", "counted")


def _command(job: str) -> str:
    return "manage.py aggregatelogs" + ("" if job == DEFAULT_JOB else f" --job {shortened(legible(job))}")


@dataclass(frozen=True)
class Worker:
    """A worker of an aggregation as the pages show it."""

    info: LogWorkerInfo

    @property
    def started_at(self) -> datetime | None:
        """Return when the worker was started, according to its report; None if that cannot be read."""
        try:
            found = datetime.fromisoformat(self.info.record.started_at) if self.info.record else None
        except ValueError:
            return None
        return found if found and found.tzinfo else None


@dataclass(frozen=True)
class Counted:
    """An aggregation as the pages show it."""

    job: str
    status: AggregationStatus

    @property
    def id(self) -> str:
        return self.status.name

    @property
    def name(self) -> str:
        return shortened(legible(self.id))

    @property
    def command(self) -> str:
        """Return the command that starts a worker."""
        own = "" if self.id == PLACES else f" --callback … --aggregation {self.name}"
        return f"{_command(self.job)}{own}"

    @property
    def service(self) -> Aggregation:
        return Aggregation(self.id, job=self.job)

    @property
    def waiting(self) -> str:
        count = grouped(self.status.waiting)
        is_cut = self.status.waiting >= MOST_WAITING
        return gettext("at least %(count)s") % {"count": count} if is_cut else count

    @property
    def workers(self) -> Sequence[Worker]:
        return [Worker(info) for info in self.status.workers]

    @property
    def alive(self) -> int:
        """Return how many workers are running."""
        return sum(each.record is not None for each in self.status.workers)

    @property
    def is_stuck(self) -> bool:
        """Return whether there is something to count and no worker is running."""
        return not self.alive and bool(self.status.waiting or self.status.claimed)

    @property
    def lines(self) -> int:
        return self.status.totals.get("lines", 0)

    @property
    def rejected(self) -> Sequence[tuple[str, str, int]]:
        """Return the name of each reason, its words, and its number of lines; the most frequent reason first."""
        found = [(name, count) for name, count in self.status.totals.items() if name not in _NO_REASONS]
        ranked = sorted((each for each in found if each[1]), key=lambda each: -each[1])
        return [(name, str(_REASONS.get(name, legible(name))), count) for name, count in ranked]

    @property
    def rejected_in_all(self) -> int:
        return sum(count for _name, _words, count in self.rejected)

    def samples(self) -> Sequence[tuple[Sample, datetime]]:
        """Return rejected lines, the newest first. Takes one round trip."""
        return self.service.samples(_SAMPLES)


@dataclass(frozen=True)
class Job:
    """A job as the pages show it."""

    status: JobStatus

    @classmethod
    def of(cls, request: HttpRequest) -> Job:
        """Return the job that the query names. Raises Http404."""
        name = request.GET.get("job", "")
        try:
            found = look_at(name)
        except InvalidName:
            raise Http404(gettext("No job can have the name %(name)r.") % {"name": shortened(name)}) from None
        if not found.is_used and name not in list_jobs():
            raise Http404(
                gettext("No logs were ever copied in a job %(name)r, and no aggregation takes part in it.")
                % {"name": name}
            )
        return cls(found)

    @property
    def id(self) -> str:
        return self.status.name

    @property
    def name(self) -> str:
        return shortened(legible(self.id))

    @property
    def title(self) -> str:
        return gettext("Job %(name)s") % {"name": self.name}

    @property
    def command(self) -> str:
        """Return the command that counts the lines of the job by their places."""
        return _command(self.id)

    @property
    def nearly_full(self) -> int:
        """Return nine tenths of the limit, in bytes: beyond that, producers will soon have to wait."""
        return (self.status.limit or 0) * 9 // 10

    @cached_property
    def aggregations(self) -> Sequence[Counted]:
        return [Counted(self.id, each) for each in self.status.aggregations]

    def trail(self, pages: ControlRoomAdmin) -> Trail:
        return [(self.title, pages.find_url(self.id))]

    def aggregation(self, request: HttpRequest) -> Counted:
        """Return the aggregation of the job that the query names. Raises Http404."""
        name = request.GET.get("aggregation", "")
        for each in self.aggregations:
            if each.id == name:
                return each
        raise Http404(
            gettext("No aggregation %(name)r takes part in the job %(job)r. It may have left.")
            % {"name": name, "job": self.id}
        )

    @property
    def alive(self) -> int:
        return sum(each.alive for each in self.aggregations)

    @property
    def dead(self) -> int:
        return sum(each.status.dead for each in self.aggregations)

    @property
    def rate(self) -> float:
        return sum(each.status.rate for each in self.aggregations)

    @property
    def lag(self) -> float | None:
        """Return the lag of the aggregation that is farthest behind."""
        return max(
            (each.status.lag for each in self.aggregations if each.status.lag is not None), default=None
        )

    @property
    def is_stuck(self) -> bool:
        return any(each.is_stuck for each in self.aggregations)
