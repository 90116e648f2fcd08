"""Staff, and a project of two admin sites."""

from __future__ import annotations

from tests.fixtures.admin import onlooker, operator, remover, staff, stranger, two_sites, viewer  # noqa: F401
