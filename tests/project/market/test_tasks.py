"""The market's tasks: they do what is left to do, once, and the sweep finds what got lost."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import settings
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import override_settings
from django.utils import timezone
from redis import Redis

from components.kit.compat import Task
from components.services.queues import TaskQueue
from project.market import tasks, trading
from project.market.models import Listing, Player, Sale
from tests.project.market.conftest import ends_in, names, opens_in, queued

FAILING = "tests.project.market.failing.EmailBackend"


@pytest.fixture
def broken_mail() -> Iterator[None]:
    """Mail goes to a server that is not there."""
    old = {"EMAIL_BACKEND": FAILING}
    new = {"MAILERS": {"default": {"BACKEND": FAILING}}}
    with override_settings(**new if hasattr(settings, "MAILERS") else old):
        yield


@pytest.fixture
def sale(listing: Listing, jack: Player) -> Sale:
    """Joe's dagger is jack's; nobody has written to joe yet."""
    Listing.objects.update(status=Listing.Status.SOLD)
    return Sale.objects.create(listing=listing, buyer=jack, seller=listing.seller, price=100)


def long_ago(sale: Sale) -> None:
    Sale.objects.filter(pk=sale.pk).update(sold_at=timezone.now() - timedelta(minutes=2))


# --- mail


def test_the_seller_is_told_who_bought_what_for_how_much(sale: Sale) -> None:
    assert tasks.send_sold_email.call(sale.pk) is True

    (message,) = mail.outbox
    assert message.to == ["joe@fakegame.example"]
    assert message.subject == "Sold: Moonlit Dagger for 100 gold"
    assert "jack has bought your Moonlit Dagger for 100 gold." in message.body


def test_a_second_sending_is_recognisable_by_its_message_id(sale: Sale) -> None:
    tasks.send_sold_email.call(sale.pk)
    tasks.send_sold_email.call(sale.pk)

    first, second = (message.message()["Message-ID"] for message in mail.outbox)
    assert first == second == f"<market-sold-{sale.pk}@fakegame.example>"


def test_mails_of_different_kinds_have_different_ids(sale: Sale) -> None:
    Listing.objects.update(status=Listing.Status.EXPIRED)

    tasks.send_sold_email.call(sale.pk)
    tasks.send_expired_email.call(sale.listing_id)

    assert len({message.message()["Message-ID"] for message in mail.outbox}) == 2


def test_a_person_without_mail_gets_none(sale: Sale) -> None:
    Player.objects.update(wants_sold_mail=False, wants_expired_mail=False)

    assert tasks.send_sold_email.call(sale.pk) is False
    assert tasks.send_expired_email.call(sale.listing_id) is False
    assert mail.outbox == []


def test_each_kind_of_mail_has_its_own_switch(sale: Sale) -> None:
    Player.objects.update(wants_sold_mail=False)

    assert tasks.send_sold_email.call(sale.pk) is False
    assert tasks.send_expired_email.call(sale.listing_id) is True


def test_a_player_without_an_address_gets_none(sale: Sale, caplog: pytest.LogCaptureFixture) -> None:
    sale.seller.user.email = ""
    sale.seller.user.save()

    assert tasks.send_sold_email.call(sale.pk) is False
    assert "joe has no address" in caplog.text


def test_a_sent_mail_is_logged(sale: Sale, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        tasks.send_sold_email.call(sale.pk)

    assert f"<market-sold-{sale.pk}@fakegame.example> sent to joe@fakegame.example" in caplog.text


def test_a_mail_that_cannot_be_sent_is_logged_and_fails_the_task(
    sale: Sale, caplog: pytest.LogCaptureFixture, broken_mail: None
) -> None:
    with pytest.raises(ConnectionRefusedError):
        tasks.send_sold_email.call(sale.pk)

    assert "could not be sent" in caplog.text


@pytest.mark.parametrize("task", [tasks.send_sold_email, tasks.send_expired_email])
def test_mail_about_what_is_gone_is_not_sent(db: None, task: Task[[int], bool]) -> None:
    assert task.call(4_711) is False
    assert mail.outbox == []


# --- opening and ending


def test_a_delayed_listing_is_opened_when_it_is_due(redis: Redis, listing: Listing) -> None:
    opens_in(listing, seconds=-1)

    tasks.open_listing.call(listing.pk)
    tasks.open_listing.call(listing.pk)

    assert Listing.objects.get().status == Listing.Status.OPEN


def test_a_task_that_is_too_early_comes_again(redis: Redis, listing: Listing) -> None:
    opens_in(listing, hours=1)
    ends_in(listing, hours=2)

    tasks.open_listing.call(listing.pk)
    tasks.end_listing.call(listing.pk)

    assert Listing.objects.get().status == Listing.Status.SCHEDULED
    assert {task.run_after for task in queued()} == {listing.opens_at, listing.ends_at}


def test_a_listing_whose_time_is_over_ends_and_its_seller_is_told(redis: Redis, listing: Listing) -> None:
    ends_in(listing, seconds=-1)

    tasks.end_listing.call(listing.pk)

    (task,) = queued()
    assert (task.name, task.args) == ("project.market.tasks.send_expired_email", [listing.pk])
    assert (task.queue, task.priority) == ("mail", -10)
    assert Listing.objects.get().status == Listing.Status.EXPIRED
    assert Listing.objects.get().mail_enqueued_at is not None


def test_ending_twice_tells_the_seller_once(redis: Redis, listing: Listing) -> None:
    ends_in(listing, seconds=-1)

    tasks.end_listing.call(listing.pk)
    tasks.end_listing.call(listing.pk)

    assert len(queued()) == 1


@pytest.mark.parametrize("status", [Listing.Status.SOLD, Listing.Status.WITHDRAWN])
def test_sold_and_withdrawn_listings_do_not_end_again(redis: Redis, listing: Listing, status: str) -> None:
    ends_in(listing, seconds=-1)
    Listing.objects.update(status=status)

    tasks.end_listing.call(listing.pk)

    assert Listing.objects.get().status == status
    assert queued() == []


def test_tasks_of_a_listing_that_is_gone_do_nothing(redis: Redis, db: None) -> None:
    tasks.open_listing.call(4_711)
    tasks.end_listing.call(4_711)

    assert queued() == []


# --- the sweep


def test_the_sweep_enqueues_the_mail_of_a_sale_that_was_interrupted(redis: Redis, sale: Sale) -> None:
    long_ago(sale)

    assert tasks.sweep.call()["sold mail"] == 1
    assert tasks.sweep.call()["sold mail"] == 0

    assert names(queued()) == {"send_sold_email"}
    assert Sale.objects.get().mail_enqueued_at is not None


def test_the_sweep_leaves_a_sale_to_its_own_process_for_a_while(redis: Redis, sale: Sale) -> None:
    assert tasks.sweep.call()["sold mail"] == 0
    assert queued() == []


def test_the_sweep_comes_again_for_what_it_left(redis: Redis, sale: Sale) -> None:
    tasks.sweep.call()

    (again,) = TaskQueue().tasks("market", "delayed")
    assert again.name == "project.market.tasks.sweep"


def test_a_sweep_that_leaves_nothing_is_the_last(redis: Redis, db: None) -> None:
    tasks.sweep.call()

    assert TaskQueue().names() == []


def test_the_sweep_opens_and_ends_what_is_due(redis: Redis, listing: Listing, jill: Player) -> None:
    ends_in(listing, seconds=-1)
    ring = jill.items.create(name="Glass Acorn")
    later = opens_in(Listing(item=ring, seller=jill, price=5), seconds=-1)

    done = tasks.sweep.call()

    assert (done["opened"], done["ended"]) == (1, 1)
    assert Listing.objects.get(pk=listing.pk).status == Listing.Status.EXPIRED
    assert Listing.objects.get(pk=later.pk).status == Listing.Status.OPEN
    assert names(queued()) == {"send_expired_email"}


def test_the_sweep_enqueues_the_mail_of_an_ending_that_was_interrupted(
    redis: Redis, listing: Listing
) -> None:
    ends_in(listing, minutes=-2)
    Listing.objects.update(status=Listing.Status.EXPIRED)

    assert tasks.sweep.call()["ended"] == 1
    assert tasks.sweep.call()["ended"] == 0

    assert names(queued()) == {"send_expired_email"}


def test_the_sweep_plans_a_listing_whose_tasks_got_lost(redis: Redis, listing: Listing) -> None:
    opens_in(listing, hours=1)
    ends_in(listing, hours=2)
    Listing.objects.update(created_at=timezone.now() - timedelta(minutes=2))

    assert tasks.sweep.call()["planned"] == 1
    assert tasks.sweep.call()["planned"] == 0

    assert names(queued()) == {"open_listing", "end_listing"}


def test_the_sweep_finds_nothing_to_do_after_ordinary_trade(
    redis: Redis, listing: Listing, jack: Player
) -> None:
    sale = trading.buy(jack, listing.pk, 100)
    long_ago(sale)

    assert not any(tasks.sweep.call().values())


def test_the_sweep_can_be_run_by_hand(redis: Redis, sale: Sale, capsys: pytest.CaptureFixture[str]) -> None:
    long_ago(sale)

    call_command("sweepmarket")

    assert "sold mail: 1" in capsys.readouterr().out


def test_the_sweep_says_that_redis_is_away(sale: Sale) -> None:
    long_ago(sale)

    with pytest.raises(CommandError, match="not reachable") as caught:
        call_command("sweepmarket")

    assert caught.value.returncode == 2
