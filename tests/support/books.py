"""The labels that are found, and invariants of the keys of an address book."""

from redis import Redis

from components.services.autocomplete import Completions, keys

MANY, BEST, DEEP = 64, 128, 24  # as in the scripts


def labels(found: Completions) -> list[str]:
    return [entry.label for entry in found]


def assert_whole(redis: Redis, name: str) -> None:
    """Assert that no load of the book runs, and that its keys are consistent."""
    rows = {
        row.split("\1")[0]: row
        for packed in redis.hvals(keys.BookKeys(name).rows)
        for row in packed.decode().split("\2")[1:]
    }
    ranks = {one.decode(): rank for one, rank in redis.zscan_iter(keys.BookKeys(name).ranks)}
    selected = _members(redis, keys.BookKeys(name).selected)
    assert ranks.keys() <= rows.keys()
    assert _members(redis, keys.BookKeys(name).entries) == {
        each for row in rows.values() for each in _found_by(row)
    }
    assert selected == {each for one in ranks for each in _found_by(rows[one])}
    assert int(redis.hget(keys.BookKeys(name).book, "count") or 0) == len(rows)
    for prefix, packed in redis.hscan_iter(keys.BookKeys(name).tops):
        _check_top(prefix.decode(), packed.decode(), selected, ranks)


def _members(redis: Redis, key: str) -> set[str]:
    return {member.decode() for member, _score in redis.zscan_iter(key)}


def _found_by(row: str) -> list[str]:
    """Return the members of the index by which the entry of *row* is found."""
    one, label, key, starts, *variants = [*row.split("\1"), ""]
    bytes_of_key = (key or label.encode().lower().decode()).encode()
    begun = [bytes_of_key[int(start) :].decode() for start in ("0", *starts.split(",")) if start]
    return [f"{text}\1{one}" for text in [*begun, *(each.partition(" ")[2] for each in variants if each)]]


def _check_top(prefix: str, packed: str, selected: set[str], ranks: dict[str, float]) -> None:
    """Assert that the best of a prefix were selected and are in order, and that there are enough of them."""
    found = [each.rsplit("\1", 1) for each in packed.split("\2")[1:]]
    assert len(prefix.encode()) <= DEEP
    assert sum(member.startswith(prefix) for member in selected) > MANY
    assert len({member for member, _rank in found}) == len(found) <= BEST
    for member, rank in found:
        assert member.startswith(prefix)
        assert member in selected
        assert float(rank) == ranks[member.partition("\1")[2]]
    assert found == sorted(found, key=lambda each: -float(each[1]))
