"""The health of Redis: what each node says of itself, if it permits INFO, as one more reading of the gathering."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext, ngettext

from components.exceptions import RedisUnavailable
from components.formatting import duration, grouped, took
from components.kit.readings import Ask, Reading
from components.reports import Line
from components.servers import Memory, described, failed_saves, risks

#: The most nodes that are shown; those with trouble come first.
MOST_NODES = 12


def state_of(lines: Sequence[Line]) -> str:
    """Return "serious", "warning" or "well"."""
    if any(line.is_serious for line in lines):
        return "serious"
    return "warning" if lines else "well"


@dataclass(frozen=True)
class Node:
    """A server, or a master of a cluster."""

    name: str
    #: The answer to INFO; empty if the server forbids it, or does not answer.
    info: Mapping[str, Any]
    #: Why it is not known.
    error: Exception | None = None
    #: Seconds that it took to answer all questions of the page.
    took: float | None = None

    @property
    def is_away(self) -> bool:
        return isinstance(self.error, RedisUnavailable)

    @property
    def state(self) -> str:
        """Return "missing", "serious", "warning" or "well"."""
        return "missing" if self.is_away else state_of([*self.lines])

    @property
    def memory(self) -> Memory:
        return Memory.of(self.info)

    @property
    def version(self) -> str:
        """Return such as "Valkey 9.1.2"; "" if it is not known."""
        server = described(self.info)
        return f"{server.name} {server.version}" if server.version else ""

    @property
    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield what is known, each with its name."""
        yield gettext("Answered this page in"), took(self.took)
        if not self.info:
            return
        yield gettext("Memory"), self._memory
        yield gettext("Operations per second"), grouped(int(self.info.get("instantaneous_ops_per_sec", 0)))
        yield gettext("Connections"), grouped(int(self.info.get("connected_clients", 0)))
        yield gettext("Evicted keys"), grouped(int(self.info.get("evicted_keys", 0)))
        yield gettext("Saves to disk"), self._persistence
        yield gettext("Replicas"), grouped(int(self.info.get("connected_slaves", 0)))
        yield gettext("Running for"), duration(int(self.info.get("uptime_in_seconds", 0)))

    @property
    def _memory(self) -> str:
        memory = self.memory
        used, limit = filesizeformat(memory.used), filesizeformat(memory.limit)
        if not memory.limit:
            return used
        if memory.is_of_machine:
            return gettext("%(used)s; the machine has %(limit)s") % {"used": used, "limit": limit}
        return gettext("%(used)s of %(limit)s") % {"used": used, "limit": limit}

    @property
    def _persistence(self) -> str:
        if self.info.get("aof_enabled"):
            return gettext("each change (append-only file)")
        age = self.info.get("rdb_last_save_time")
        return gettext("snapshots only") if age else gettext("never")

    @property
    def lines(self) -> Iterator[Line]:
        """Yield what needs attention."""
        about = {"node": self.name, "master": str(self.info.get("master_host", "")), "memory": self._memory}
        if self.is_away:
            yield Line(
                "E101",
                gettext("The node %(node)s does not answer, and what it stores is missing on this page.")
                % about,
                advice=gettext("Start it, or let its replica take over."),
            )
        if self.info.get("role") == "slave":
            yield Line(
                "E104",
                gettext("%(node)s is a read-only replica of %(master)s and takes no writes.") % about,
                advice=gettext("Let the settings name its master, or the service name of Sentinels."),
            )
        for name in failed_saves(self.info):
            yield Line(
                "E105",
                gettext("%(node)s could not save its data (%(name)s), and a crash would lose them.")
                % {**about, "name": name},
                advice=gettext("Make room on its disk, and look into its log."),
            )
        if self.memory.is_full:
            yield Line(
                "E106",
                gettext("%(node)s is full (%(memory)s): it refuses writes, or evicts data.") % about,
                advice=gettext("Raise maxmemory, or remove what has piled up."),
            )
        elif self.memory.is_nearly_full:
            yield Line(
                "W106",
                gettext("%(node)s uses more than nine tenths of its memory (%(memory)s).") % about,
                advice=gettext("Give it more memory, or remove what has piled up."),
            )
        for risk in risks(self.info):
            said = f"{self.name}: {gettext(risk.text) % risk.values}"
            yield Line("W103", said, advice=gettext(risk.remedy))


def read_nodes() -> Reading[dict[str, Any]]:
    """Ask each node what it says of itself."""
    [answers] = yield [Ask(None, lambda node: node.info())]
    return dict(answers)


def nodes(answers: Mapping[str, Any], seconds: Mapping[str, float]) -> list[Node]:
    """Return the nodes from their answers, and from how long each took; those with trouble come first."""
    found = [
        Node(name, {}, answer)
        if isinstance(answer, Exception)
        else Node(name, answer, None, seconds.get(name))
        for name, answer in answers.items()
    ]
    order = ("missing", "serious", "warning", "well")
    return sorted(found, key=lambda node: (order.index(node.state), node.name))


def lines_of(found: list[Node]) -> list[Line]:
    """Return what needs attention of all nodes."""
    lines = [line for node in found[:MOST_NODES] for line in node.lines]
    rest = [node for node in found[MOST_NODES:] if node.state != "well"]
    if rest:
        text = ngettext(
            "%(count)s more node of Redis needs attention.",
            "%(count)s more nodes of Redis need attention.",
            len(rest),
        )
        lines.append(Line("E101", text % {"count": grouped(len(rest))}))
    return lines
