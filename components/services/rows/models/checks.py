"""
System checks of cached rows: errors in their declarations, found before a reader or a daemon meets them.

A delay of 0 and a duplicate name are refused when the model is declared. Everything else is checked after all models
are loaded, because fields refer to other models. No check opens a connection.
"""

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from components.exceptions import InvalidName, InvalidValue
from components.services.rows import RowCache, Shape
from components.services.rows.models.cached import CachedRows, cached_rows
from components.services.rows.models.fields import AS_TEXT


def check_rows(**kwargs: Any) -> list[CheckMessage]:
    """Check the fields (E007), the key (E008), the name and database (E009), and fields of unknown kinds (W005)."""
    found: list[CheckMessage] = []
    for rows in cached_rows().values():
        for problem, hint, id in _problems(rows):
            said = f"The cached rows {rows.name!r}: {problem}"
            found.append(Error(said, hint=hint, obj=rows.model, id=id))
        found += _unknown(rows)
    return found


def _problems(rows: CachedRows[Any]) -> Iterator[tuple[str, str, str]]:
    meta = rows.model._meta
    try:
        rows.shape  # noqa: B018  (made of the fields when it is first asked for)
    except (ImproperlyConfigured, InvalidValue) as error:
        known = ", ".join(field.name for field in meta.concrete_fields)
        yield (
            str(error),
            f"A list of some of these: {known}. Without it, all but passwords are cached.",
            "components.E007",
        )
    try:
        rows.key_field  # noqa: B018
    except ImproperlyConfigured as error:
        unique = ", ".join(field.name for field in meta.concrete_fields if field.unique)
        yield str(error), f'The key is "pk" or another field that is unique: {unique}.', "components.E008"
    try:
        RowCache(rows.name, Shape([("any", "text")]))
    except InvalidName as error:
        yield str(error), "Without a name, it is that of the model, in small letters.", "components.E009"
    if rows.database not in connections.settings:
        known = ", ".join(connections.settings)
        yield (
            f"settings.DATABASES has no alias {rows.database!r}.",
            f"Known aliases: {known}. Without *using*, it is the database of the model's writes.",
            "components.E009",
        )


def _unknown(rows: CachedRows[Any]) -> Iterator[CheckMessage]:
    """Warn of fields of unknown kinds, unless they were named: then the project knows their values."""
    if rows.names_its_fields:  # wrong names are reported above
        return
    for field, kind in zip(rows.fields, rows.shape.kinds, strict=True):
        if kind.name.startswith(AS_TEXT):
            yield Warning(
                f"The cached rows {rows.name!r} have the field {field.name}, a {type(field).__name__}, whose "
                "values are of an unknown kind.",
                hint="They are written as text by its own serialization. A row whose value does not come back equal "
                "is not cached. Say by `fields` which ones are: this one too if it does, else all others.",
                obj=rows.model,
                id="components.W005",
            )
