"""
{% cached_row %}: cached rows of models in any template.

    {% load cached_rows %}
    {% cached_row "market.item" pk as item %}{% if item %}{{ item.stock }} left{% endif %}
    {% cached_rows "market.item" pks stale=True as items %}{% for item in items %}…{% endfor %}

Rows are called as their model, or by their own name. They are read when the page is made: one round trip for each
tag, and a query for what is missed. So a template that a coroutine renders is given its rows by aget() instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import template

from components.services.rows.models import CachedRows, FrozenRow
from components.services.rows.models import cached_rows as declared

register = template.Library()


@register.simple_tag
def cached_row(name: str, pk: Any, **options: Any) -> FrozenRow | None:
    """The row; None if there is none, or *pk* is None or "". *options* are those of get(): max_age, wait, stale."""
    return None if pk in (None, "") else _called(name).get(pk, **options)


@register.simple_tag
def cached_rows(name: str, pks: Iterable[Any], **options: Any) -> list[FrozenRow]:
    """Those of the rows that there are, in the order of *pks*."""
    found = _called(name).get_many(wanted := list(pks), **options)
    return [found[pk] for pk in wanted if pk in found]


def _called(name: str) -> CachedRows:
    """What a template quotes is taken for HTML; this is a name."""
    known = declared()
    rows = known.get(name + "") or known.get(name.lower())
    if rows is None:
        raise template.TemplateSyntaxError(
            f"No model has cached rows called {name!r}; there are: {', '.join(sorted(known))}."
        )
    return rows
