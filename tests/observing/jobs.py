"""Tasks that write to the log."""

from __future__ import annotations

import logging

from components.kit.compat import task

logger = logging.getLogger("site")


@task
def tell() -> None:
    logger.info("at work", extra={"item": 7})


@task
async def atell() -> None:
    logger.info("at work", extra={"item": 7})
