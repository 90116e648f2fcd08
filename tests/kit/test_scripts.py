"""
Script: a Lua file, callable and awaitable; sent by its digest, once more after a lost reply. Several calls travel in
one round trip, whatever of them is refused or lost.

The header of a script is its interface, so it is held against the body: every key, argument and prelude that one
names, the other uses. components/kit/lua_headers.py says how a header reads.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest
from redis import Redis
from redis.exceptions import ResponseError

import components
from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable, RedisUnsuitable
from components.kit import scripts
from components.kit.client import get_async_client, get_client
from components.kit.lua_headers import Contract, Names, Record, Table, contract, read_header
from components.kit.scripts import Call, Script
from components.kit.sync_async import at_once
from components.testing import redis_at
from tests.support.monitoring import sent_to
from tests.support.proxy import LossyProxy


class Source(Script):
    """A script that is not a file."""

    def __init__(self, source: str) -> None:
        super().__init__("none")
        self.source = source


COUNT = 'return redis.call("INCR", KEYS[1])'
KEYS = [f"{{{number}}}" for number in range(5)]

Run: TypeAlias = Callable[[Script, Sequence[Call]], list[Any]]


def called(script: Script, calls: Sequence[Call]) -> list[Any]:
    return [at_once(script.acall(get_client(), keys=keys, args=args)) for keys, args in calls]


def awaited(script: Script, calls: Sequence[Call]) -> list[Any]:
    async def main() -> list[Any]:
        return [await script.acall(get_async_client(), keys=keys, args=args) for keys, args in calls]

    return asyncio.run(main())


def together(script: Script, calls: Sequence[Call]) -> list[Any]:
    return at_once(script.amany(get_client(), calls))


def awaited_together(script: Script, calls: Sequence[Call]) -> list[Any]:
    async def main() -> list[Any]:
        return await script.amany(get_async_client(), calls)

    return asyncio.run(main())


@pytest.fixture(params=[called, awaited, together, awaited_together])
def run(request: pytest.FixtureRequest) -> Run:
    """Run calls with the project's client of one kind, one by one or together."""
    found: Run = request.param
    return found


@pytest.fixture
def proxy(redis_server: EmbeddedServer, redis: Redis) -> Iterator[LossyProxy]:
    with LossyProxy(redis_server) as proxy:
        yield proxy


@pytest.mark.parametrize("run", [called, awaited])
def test_the_source_is_sent_once_then_the_digest(
    redis: Redis, redis_server: EmbeddedServer, run: Run
) -> None:
    redis.script_flush()

    with sent_to(redis_server) as commands:
        answers = run(Source(COUNT), [(["a"], [])] * 3)

    assert answers == [1, 2, 3]
    sent = [command for command in commands if command.startswith("EVAL")]  # a new loop says hello as well
    assert sent == ["EVALSHA", "EVAL", "EVALSHA", "EVALSHA"]


@pytest.mark.parametrize("run", [together, awaited_together])
def test_the_source_is_loaded_for_calls_that_travel_together(
    redis: Redis, redis_server: EmbeddedServer, run: Run
) -> None:
    redis.script_flush()

    with sent_to(redis_server) as commands:
        assert run(Source(COUNT), [(["a"], [])] * 3) == [1, 2, 3]

    assert [each for each in commands if each[:4] in ("EVAL", "SCRI")] == [
        *["EVALSHA"] * 3,
        "SCRIPT",
        *["EVALSHA"] * 3,
    ]


@pytest.mark.parametrize("silently", [False, True], ids=["connection lost", "no answer"])
def test_a_lost_reply_is_asked_for_once_more(
    proxy: LossyProxy, redis: Redis, silently: bool, run: Run
) -> None:
    script = Source(COUNT)
    called(script, [(["a"], [])])
    with redis_at(proxy.url, SOCKET_TIMEOUT=0.3):
        proxy.lose_replies(to="EVALSHA", silently=silently)
        assert run(script, [(["a"], [])]) == [3]

    assert proxy.lost == 1


def test_half_a_reply_and_the_end_is_a_lost_one(proxy: LossyProxy, redis: Redis, run: Run) -> None:
    count = Source(COUNT + " + 1000")
    called(count, [(["a"], [])])
    with redis_at(proxy.url):
        proxy.lose_replies(to="EVALSHA", instead=lambda reply: reply[:3])
        assert run(count, [(["a"], [])]) == [1003]

    assert proxy.lost == 1


@pytest.mark.parametrize("run", [called, awaited])
def test_a_reply_that_comes_twice_is_given_once(proxy: LossyProxy, redis: Redis, run: Run) -> None:
    count = Source(COUNT)
    called(count, [(["a"], [])])
    with redis_at(proxy.url):
        proxy.lose_replies(to="EVALSHA", instead=lambda reply: 2 * reply, silently=True)
        assert run(count, [(["a"], []), (["b"], []), (["a"], [])]) == [2, 1, 3]


def test_what_is_no_reply_is_reported_and_the_next_call_is_answered(
    proxy: LossyProxy, redis: Redis, run: Run
) -> None:
    count = Source(COUNT)
    called(count, [(["a"], [])])
    with redis_at(proxy.url):
        proxy.lose_replies(to="EVALSHA", instead=lambda reply: b"?" + reply, silently=True)
        with pytest.raises(RedisUnsuitable, match="does not speak the Redis protocol"):
            run(count, [(["a"], [])])
        assert run(count, [(["a"], [])]) == [3]


@pytest.mark.parametrize("dropped", ["by a call", "by calls"])
def test_a_connection_that_a_firewall_has_dropped_while_it_was_idle_is_replaced(
    proxy: LossyProxy, redis: Redis, dropped: str
) -> None:
    count, many = Source(COUNT), dropped == "by calls"

    async def main() -> list[Any]:
        client, found = get_async_client(), []
        for _ in range(2):
            found += await count.amany(client, [([key], []) for key in KEYS[: 3 if many else 1]])
            proxy.drop()
        return found

    with redis_at(proxy.url, SOCKET_TIMEOUT=0.3):
        assert called(count, [(["a"], [])]) == [1]
        proxy.drop()
        assert called(count, [(["a"], [])]) == [2]
        assert asyncio.run(main()) == ([1, 1, 1, 2, 2, 2] if many else [1, 2])


@pytest.mark.parametrize("run", [called, awaited])
def test_two_lost_replies_are_an_outage(proxy: LossyProxy, redis: Redis, run: Run) -> None:
    script = Source(COUNT)
    called(script, [(["a"], [])])
    with redis_at(proxy.url):
        proxy.lose_replies(to="EVALSHA", times=5)
        with pytest.raises(RedisUnavailable):
            run(script, [(["a"], [])])

    assert proxy.lost == 2
    assert redis.get("a") == b"3"


def test_an_error_of_the_script_is_not_repeated_and_not_an_outage(redis: Redis, run: Run) -> None:
    script = Source('redis.call("INCR", KEYS[1]) return redis.call("LPUSH", KEYS[1], "x")')
    calls = [(["a"], [])]

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        run(script, calls)

    assert redis.get("a") == b"1"


@pytest.mark.parametrize("run", [together, awaited_together])
def test_answered_calls_are_not_repeated_when_a_script_is_unknown_to_others(
    redis: Redis, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another client may load the script while the server works through a pipeline."""
    count = Source(COUNT)
    redis.script_flush()
    send = scripts._send_together

    async def interrupted(node: Any, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        monkeypatch.undo()
        before = await send(node, commands[:3])
        redis.script_load(count.source)
        return before + await send(node, commands[3:])

    monkeypatch.setattr(scripts, "_send_together", interrupted)

    assert run(count, [([key], []) for key in KEYS]) == [1] * len(KEYS)


@pytest.mark.parametrize("run", [together, awaited_together])
def test_a_mistake_in_one_call_is_told_and_the_others_are_made(redis: Redis, run: Run) -> None:
    redis.rpush(KEYS[1], "a list")

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        run(Source(COUNT), [([KEYS[0]], []), ([KEYS[1]], []), ([KEYS[2]], [])])

    assert redis.mget(KEYS[0], KEYS[2]) == [b"1", b"1"]


SERVICES = Path(components.__file__).parent / "services"
FILES = {f"{path.parent.parent.name}/{path.stem}": path for path in sorted(SERVICES.glob("*/lua/*.lua"))}
FILES |= {f"kit/{path.stem}": path for path in sorted((SERVICES.parent / "kit" / "lua").glob("*.lua"))}
PRELUDES = {name: path for name, path in FILES.items() if "/_" in name}
SCRIPTS = {name: path for name, path in FILES.items() if name not in PRELUDES}
LONGEST_MAIN = 60  # lines of code that are in no function
WIDEST = 118  # characters
#: The hashes of counters have 120 fields at most, of which many are wanted together; the searches of a book that
#: found nothing are 200; aggregations of logs are few.
BOUNDED = {"autocomplete/_miss": {"HGETALL"}, "counters/_slices": {"HGETALL"}, "logs/_needed": {"HVALS"}}
#: What goes through all keys or all of one, and so takes longer the more there is.
UNBOUNDED = {"KEYS", "SCAN", "SSCAN", "HSCAN", "ZSCAN", "HGETALL", "HKEYS", "HVALS", "SMEMBERS", "SORT"}
#: Lua's JSON turns [] into {} and rounds large numbers; its random numbers are the same in every call.
FORBIDDEN = ("cjson", "cmsgpack", "math.random", "redis.pcall", "redis.replicate_commands")


def _body_wrong(body: str, bounded: set[str], *, may_be_pure: bool = False) -> Iterator[str]:
    calls = len(re.findall(r"redis\.call\(", body))
    commands = re.findall(r'redis\.call\("([A-Z]+)"', body)
    if not commands and not may_be_pure:
        yield "it calls no command"
    if len(commands) != calls:
        yield "it calls a command that is not written out in capitals"
    yield from (f"it calls {command}" for command in sorted(UNBOUNDED & set(commands) - bounded))
    if commands.count("TIME") > 1:
        yield "it reads the time more than once"
    yield from (f"it uses {word}" for word in FORBIDDEN if word in body)
    for name in re.findall(r"^(?:function )?(\w+)\s*=[^=]", body, re.MULTILINE):
        yield f"{name} is global"


def wrong(name: str, source: str) -> Iterator[str]:
    lines = source.splitlines()
    header = list(takewhile(lambda line: line.startswith("--"), lines))
    if not any(line.startswith("-- RETURNS ") for line in header):
        yield "its header does not say what it returns"
        return
    body = re.sub(r"--.*", "", "\n".join(lines[len(header) :]))
    if not re.match(r"-- [A-Z].*\.( .*)?$", header[0]):
        yield "its first line does not say what it does"
    parts = [match[1] for line in header if (match := re.match(r"-- (KEYS|ARGV|USES|RETURNS) ", line))]
    if parts != sorted(parts, key=["KEYS", "ARGV", "USES", "RETURNS"].index):
        yield "its header is not in the order KEYS, ARGV, USES, RETURNS"
    read = read_header(name, source)
    preludes = dict(all_preludes(name, read.get("USES", [])))
    everything = "\n".join([body, *(re.sub(r"--.*", "", each) for each in preludes.values())])
    for word in re.findall(r"\w+", " ".join([*read.get("KEYS", []), *read.get("ARGV", [])])):
        if not re.search(rf"\b{word}\b", everything):
            yield f"{word} is in its header and not in its body"
    for each in read.get("USES", []):
        others = "\n".join([body, *(text for other, text in preludes.items() if other != each)])
        if not any(re.search(rf"\b{word}\b", others) for word in defined_by(preludes[each])):
            yield f"it uses nothing of _{each}.lua"
    names = {*read.get("KEYS", []), *read.get("ARGV", [])}
    for complaint in _body_wrong(body, BOUNDED.get(name, set()), may_be_pure=bool(preludes)):
        if not (complaint.endswith(" is global") and complaint.split()[0] in names):
            yield complaint
    if "KEYS[" in body or "ARGV[" in body:
        yield "it takes keys or arguments by number"
    if '"TIME"' in body:
        yield "it reads the time by itself: USES time"
    yield from (f"line {number} is too wide" for number, line in enumerate(lines, 1) if len(line) > WIDEST)
    main = [line for line in re.sub(r"(?ms)^local function .*?^end$", "", body).splitlines() if line.strip()]
    if len(main) > LONGEST_MAIN:
        yield f"{len(main)} of its lines are in no function"


def all_preludes(name: str, wanted: list[str]) -> Iterator[tuple[str, str]]:
    """The preludes that a script uses, and those that they use, with their sources."""
    for each in wanted:
        path = PRELUDES.get(f"{name.partition('/')[0]}/_{each}") or PRELUDES[f"kit/_{each}"]
        yield each, (source := path.read_text(encoding="utf-8"))
        yield from all_preludes(name, read_header(each, source).get("USES", []))


def defined_by(prelude: str) -> set[str]:
    """The names that the rest of a script has from a prelude."""
    found = set(re.findall(r"^local function (\w+)", prelude, re.MULTILINE))
    for names in re.findall(r"^local ([\w, ]+?) =", prelude, re.MULTILINE):
        found |= {name.strip() for name in names.split(",")}
    for name in re.findall(r"^-- RECORD +(\w+):", prelude, re.MULTILINE):
        found |= {f"read_{name}", f"write_{name}"}
    return found


def test_a_prelude_only_defines_and_is_used() -> None:
    assert sorted(FILES.values()) == sorted(SERVICES.parent.rglob("*.lua"))
    uses = {
        (name.partition("/")[0], each)
        for name, path in FILES.items()
        for each in read_header(name, path.read_text(encoding="utf-8")).get("USES", [])
    }
    for name, path in PRELUDES.items():
        source = path.read_text(encoding="utf-8")
        body = re.sub(r"--.*", "", source)
        service, _, prelude = name.partition("/_")
        assert defined_by(source), name
        assert list(_body_wrong(body, BOUNDED.get(name, set()), may_be_pure=True)) == [], name
        assert '"TIME"' not in body or name in ("kit/_clock", "kit/_time"), name
        assert all(len(line) <= WIDEST for line in source.splitlines()), name
        assert any(each == prelude and service in ("kit", of) for of, each in uses), name


def test_the_header_of_a_script_agrees_with_its_body() -> None:
    found = {name: list(wrong(name, path.read_text(encoding="utf-8"))) for name, path in SCRIPTS.items()}

    assert {name: complaints for name, complaints in found.items() if complaints} == {}


MEMBER = Record("member", ("role", "joined", "muted"))


def test_a_prelude_comes_once_and_after_what_it_needs() -> None:
    source = contract("mailboxes/push").source

    assert source.count('redis.call("TIME")') == 1
    assert (
        source.index('redis.call("TIME")')
        < source.index("local today, yesterday")
        < source.index("make_room")
    )


@pytest.mark.parametrize("parts", [("b",), ("b", "a")])
def test_the_text_after_a_marker_may_come_in_parts(redis: Redis, parts: tuple[str, ...]) -> None:
    tables = (Table("shares", parts), Table("words"), Table("tasks", parts))
    made = Contract("a/b", Names(("one",), (Table("queues", parts),)), Names(("x",), tables), "")
    entries = [SimpleNamespace(a=number, b=-number) for number in (1, 2)]
    given = {"x": 0, "queues": entries, "tasks": entries, "shares": [], "words": ["w"]}

    keys = made.keys_of(SimpleNamespace(one="k"), given)
    args = made.args_of(given)
    shows = """
        local found = { one, x, #shares, words[1], #words }
        for at, each in ipairs(tasks) do found[#found + 1] = each.b + queues[at].b end
        return found"""
    source = "\n".join([*made.keys.locals("KEYS"), *made.args.locals("ARGV"), shows])

    flat = [getattr(entry, part) for entry in entries for part in parts]
    assert keys == ["k", *flat]
    assert args == [0, 0, 1, "w", *flat]
    assert redis.eval(source, len(keys), *map(str, keys), *args) == [b"k", b"0", 0, b"w", 1, -2, -4]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (b"owner 1 2", ("owner", "1", "2")),
        (b"owner 1", ("owner", "1", "")),
        (b"owner  2", ("owner", "", "2")),
        (b"owner 1 2 3", ("owner", "1", "2")),
        (b"", ("", "", "")),
        (b"\xff 1 2", ("\ufffd", "1", "2")),
    ],
)
def test_both_languages_read_older_newer_and_damaged_records_alike(
    redis: Redis, text: bytes, fields: tuple[str, ...]
) -> None:
    source = "\n".join(MEMBER.lua())
    shows = "local m = read_member(ARGV[1]) return { m.role, m.joined, m.muted, write_member(m) }"

    assert tuple(MEMBER.read(text).values()) == fields
    *found, written = redis.eval(f"{source}\n{shows}", 0, text)
    assert tuple(each.decode(errors="replace") for each in found) == fields
    assert MEMBER.read(written) == MEMBER.read(text)
