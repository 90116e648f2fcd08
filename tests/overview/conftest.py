"""Staff, a project of two admin sites, and the overview as a reader has it."""

from tests.fixtures.admin import staff, two_sites  # noqa: F401
