"""How fast a counter counts, as people say it."""

from __future__ import annotations

import pytest

from components.templatetags.charts import rate


@pytest.mark.parametrize(
    ("per_second", "said"),
    [
        (1_234.5, "1,234.5 a second"),
        (1, "1 a second"),
        (0.5, "30 a minute"),
        (-0.5, "-30 a minute"),
        (1 / 3_600, "1 an hour"),
        (0.0001, "8.64 a day"),
        (0.000001, "0.09 a day"),
        (0, "\N{EN DASH}"),
    ],
)
def test_a_rate_is_told_in_the_shortest_time_in_which_it_is_one(per_second, said):
    assert rate(per_second) == said
