"""The figures of semaphores."""

from __future__ import annotations

from components.kit.figures import Event

EVENTS = (
    Event("semaphores:acquired", "components_permits_acquired", "Permits that were acquired."),
    Event("semaphores:waited", "components_permits_waited", "Calls that had to wait for a permit."),
    Event(
        "semaphores:lost", "components_permits_lost", "Permits whose time ended before they were released."
    ),
    Event(
        "semaphores:wait",
        "components_permit_wait_seconds",
        "How long calls that waited and got a permit did.",
        is_histogram=True,
    ),
)
