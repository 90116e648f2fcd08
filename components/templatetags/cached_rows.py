"""
{% cached_row %}: cached rows of models in any template.

    {% load cached_rows %}
    {% cached_row "market.item" pk as item %}{% if item %}{{ item.stock }} left{% endif %}
    {% cached_rows "market.item" pks stale=True as items %}{% for item in items %}…{% endfor %}

Rows have the name of their model unless they define another. They are read while the page is rendered: one round trip
for each tag, and a query for missing rows. If a coroutine renders the template, read the rows with aget() first.
"""

from collections.abc import Iterable
from typing import Any

from django import template

from components.services.rows.models import CachedRows, FrozenRow
from components.services.rows.models import cached_rows as declared

register = template.Library()


@register.simple_tag
def cached_row(name: str, pk: Any, **options: Any) -> FrozenRow | None:
    """
    Return the row; None if there is none, or if *pk* is None or "". *options* are max_age, wait and stale, as of
    get().
    """
    return None if pk in (None, "") else _called(name).get(pk, **options)


@register.simple_tag
def cached_rows(name: str, pks: Iterable[Any], **options: Any) -> list[FrozenRow]:
    """Return the existing rows, in the order of *pks*."""
    found = _called(name).get_many(wanted := list(pks), **options)
    return [found[pk] for pk in wanted if pk in found]


def _called(name: str) -> CachedRows[Any]:
    """Return a name as plain text: a template marks quoted text as safe HTML."""
    known = declared()
    rows = known.get(name + "") or known.get(name.lower())
    if rows is None:
        raise template.TemplateSyntaxError(
            f"No model has cached rows with the name {name!r}; the known names are: "
            f"{', '.join(sorted(known))}."
        )
    return rows
