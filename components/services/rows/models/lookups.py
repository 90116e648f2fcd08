"""AnyOf: rows by many whole numbers, sent to PostgreSQL as one parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Lookup
from django.db.models.sql.compiler import SQLCompiler


class AnyOf(Lookup):
    """
    filter(AnyOf(F("pk"), [1, 2, 3])), on PostgreSQL alone.

    With pk__in each number is a parameter: to write a thousand of them takes longer than the query.
    """

    prepare_rhs = False

    def __init__(self, column: F, values: Sequence[int]) -> None:
        super().__init__(column, list(values))

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        column, params = self.process_lhs(compiler, connection)
        return f"{column} = ANY(%s)", [*params, self.rhs]
