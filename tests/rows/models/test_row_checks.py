"""What `manage.py check` says of cached rows that are declared wrong. None of it asks Redis or a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks

from components.services.rows.models import CachedRows
from tests.db.models import Shelf, Token, Ware
from tests.fixtures.databases import forget

Declare = Callable[..., list[CheckMessage]]


@pytest.fixture
def declare() -> Iterator[Declare]:
    """declare(model, **options): what the checks say of such rows."""
    declared = []

    def declare(model: Any, **options: Any) -> list[CheckMessage]:
        declared.append(CachedRows(model, **{"name": "others", **options}))
        name = repr(declared[-1].name)
        return [each for each in run_checks() if str(each.id).startswith("components.") and name in each.msg]

    yield declare
    for rows in declared:
        forget(rows)


@pytest.mark.parametrize(
    ("options", "id", "says", "hints"),
    [
        ({"fields": ["name", "none"]}, "E007", "no field named 'none'", "id, name"),
        ({"fields": ["boxes"]}, "E007", "boxes has no column", "id, name"),
        ({"fields": "name"}, "E007", "the text 'name' and no list", "id, name"),
        ({"fields": []}, "E007", "1 to 2,000", "id, name"),
        ({"fields": ["name", "name"]}, "E007", "a name of its own", "id, name"),
        ({"key": "none"}, "E008", "no field named 'none'", ": id, name."),
        ({"key": "boxes"}, "E008", "boxes has no column", ": id, name."),
        ({"name": "a:b"}, "E009", "without a colon", "that of the model"),
        ({"using": "nowhere"}, "E009", "no alias 'nowhere'", "Known aliases: default"),
    ],
)
def test_an_invalid_declaration_is_an_error_with_a_hint(
    declare: Declare, options: dict[str, Any], id: str, says: str, hints: str
) -> None:
    [message] = declare(Shelf, **options)

    assert (message.id, message.obj, message.is_serious()) == (f"components.{id}", Shelf, True)
    assert says in message.msg
    assert hints in str(message.hint)


def test_all_that_is_wrong_is_told_at_once(declare: Declare) -> None:
    messages = declare(Ware, fields=["none"], key="stock", using="nowhere")

    assert [message.id for message in messages] == ["components.E007", "components.E008", "components.E009"]


def test_a_field_of_which_nothing_is_known_is_warned_of(declare: Declare) -> None:
    [message] = declare(Token)

    assert (message.id, message.is_serious()) == ("components.W005", False)
    assert "field value, a Lossy" in message.msg


def test_a_valid_declaration_raises_no_complaint(declare: Declare) -> None:
    assert declare(Shelf, key="name", using="default", delay=0.5) == []
