"""
Kinds of fields: the kind of the values of a model field, chosen by its Django class.

A field of an unknown class uses its own serialization (value_to_string, to_python). If a value does not come back
unchanged, its row is refused. A foreign key has the kind of the field that it refers to.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from django.db import models

from components.exceptions import RowNotSerializable
from components.services.rows import KINDS, Kind, list_of

#: The prefix of the names of kinds that use the field's own serialization.
AS_TEXT = "text of "
#: By Field.get_internal_type().
_KINDS = {
    **dict.fromkeys(("CharField", "TextField", "SlugField", "FileField", "FilePathField"), "text"),
    **dict.fromkeys(("IPAddressField", "GenericIPAddressField"), "text"),
    **dict.fromkeys(
        ("AutoField", "BigAutoField", "SmallAutoField", "IntegerField", "BigIntegerField"), "integer"
    ),
    **dict.fromkeys(("SmallIntegerField", "PositiveIntegerField"), "integer"),
    **dict.fromkeys(("PositiveBigIntegerField", "PositiveSmallIntegerField"), "integer"),
    "BooleanField": "boolean",
    "FloatField": "float",
    "DecimalField": "decimal",
    "DateTimeField": "datetime",
    "DateField": "date",
    "TimeField": "time",
    "DurationField": "duration",
    "UUIDField": "uuid",
    "BinaryField": "bytes",
}


def kind_of(field: models.Field[Any, Any]) -> Kind:
    """Return the kind of a concrete field's values."""
    if field.is_relation and getattr(field, "remote_field", None):
        return kind_of(field.target_field)  # type: ignore[attr-defined]
    if isinstance(field, models.JSONField):
        return _json(field)
    if base := getattr(field, "base_field", None):
        # A range field has a base field as well, but its values are not lists.
        if field.get_internal_type() == "ArrayField":
            return list_of(kind_of(base))
        return _as_text(field)
    if isinstance(field, models.GeneratedField):
        return kind_of(field.output_field)  # type: ignore[arg-type]
    name = _KINDS.get(field.get_internal_type())
    # If the field converts values from the database, the class of the column does not determine their kind.
    if name is None or hasattr(field, "from_db_value"):
        return _as_text(field)
    return KINDS[name]


def _json(field: models.JSONField[Any, Any]) -> Kind:
    """Return the kind for plain JSON or, if the field has its own encoder or decoder, for text made by these."""
    if field.encoder is None and field.decoder is None:
        return KINDS["json"]
    return Kind(
        "json text",
        lambda value: json.dumps(value, cls=field.encoder),
        lambda text: json.loads(text, cls=field.decoder),
    )


def _as_text(field: models.Field[Any, Any]) -> Kind:
    def encode(value: Any) -> str:
        text = str(field.value_to_string(SimpleNamespace(**{field.attname: value})))  # type: ignore[arg-type]
        if (found := field.to_python(text)) != value:
            raise RowNotSerializable(
                f"the values of {type(field).__name__} do not come back as they were: {value!r} is {found!r} then"
            )
        return text

    return Kind(f"{AS_TEXT}{type(field).__module__}.{type(field).__qualname__}", encode, field.to_python)
