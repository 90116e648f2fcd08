"""Tables as files of comma-separated values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.http import HttpResponse

from components.kit.sheets import write_csv


def as_csv(filename: str, rows: Iterable[Sequence[object]], *, names: int | None = None) -> HttpResponse:
    """Return a download of *rows*, in which a spreadsheet calculates nothing: write_csv() has the details."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    write_csv(response, rows, names=names)
    return response
