"""Many processes with many threads trade at once, on a real SQLite file and on a real PostgreSQL."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.project.market.crowd import FLASH, FUNDS, PRICE, STOCK, VISITORS, Crowd, assert_books_balance

pytestmark = [pytest.mark.slow, pytest.mark.long]


def test_exactly_one_of_many_buyers_gets_the_item(crowd: Crowd) -> None:
    wanted = crowd.first_of("joe")

    outcomes = crowd.trade([("jack", wanted, PRICE)] * 8, [("jill", wanted, PRICE)] * 8)

    facts = crowd.ask("audit")
    assert Counter(outcomes) == {"bought": 1, "ListingClosed": 15}
    assert len(facts["sold"]) == 1
    assert facts["funds"]["joe"] == FUNDS + PRICE
    assert_books_balance(facts)


def test_players_who_buy_from_each_other_all_at_once_do_not_block_each_other(crowd: Crowd) -> None:
    buyer_of = {"joe": "jack", "jack": "jill", "jill": "joe"}
    orders = [(buyer_of[seller], pk, PRICE) for pk, seller in crowd.listings.items()]

    outcomes = crowd.trade(orders[0::2], orders[1::2])

    facts = crowd.ask("audit")
    assert set(outcomes) == {"bought"}
    assert facts["funds"] == {"joe": FUNDS, "jack": FUNDS, "jill": FUNDS}
    assert_books_balance(facts)


def test_a_purse_is_spent_once(crowd: Crowd) -> None:
    """Jack can pay for ten of the sixteen things that he orders at once."""
    orders = [("jack", pk, PRICE) for pk, seller in crowd.listings.items() if seller != "jack"]

    outcomes = crowd.trade(orders[0::2], orders[1::2])

    facts = crowd.ask("audit")
    assert Counter(outcomes) == {"bought": 10, "NotEnoughFunds": 6}
    assert facts["funds"]["jack"] == 0
    assert_books_balance(facts)


def test_a_flash_sale_is_never_oversold(crowd: Crowd) -> None:
    """Twenty-four want ten things, four of them twice at once."""
    half = len(VISITORS) // 2
    groups = [VISITORS[:half], VISITORS[half:] + VISITORS[:4]]

    outcomes = crowd.trade(*([(name, FLASH, PRICE) for name in names] for names in groups))

    flash = crowd.ask("audit")["flash"]
    assert flash["remaining"] == 0
    assert Counter(outcomes)["bought"] == STOCK
    assert set(outcomes) <= {"bought", "SoldOut", "OneEach"}
    assert len(set(flash["buyers"])) == STOCK
    assert flash["owners"] == flash["buyers"]
    assert flash["spent"] == STOCK * PRICE
