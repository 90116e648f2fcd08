"""The dashboard for Grafana: its structure is what Grafana imports, and it asks for figures that there are."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

import components
from components.observing.exposition import expose

DASHBOARD = json.loads((Path(components.__file__).parent / "observing" / "grafana.json").read_text("utf-8"))
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
CHARTS = [panel for panel in PANELS if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in CHARTS for target in panel["targets"]]

#: The type of each field that Grafana's schema of dashboards requires, or that this one relies on.
OF_DASHBOARD = {
    "uid": str, "title": str, "tags": list, "schemaVersion": int, "version": int, "editable": bool, "refresh": str,
    "time": dict, "templating": dict, "annotations": dict, "panels": list,
}  # fmt: skip
OF_ANY_PANEL = {"id": int, "type": str, "title": str, "gridPos": dict}
OF_CHART = {**OF_ANY_PANEL, "datasource": dict, "fieldConfig": dict, "options": dict, "targets": list}
OF_TARGET = {"refId": str, "datasource": dict, "expr": str, "legendFormat": str}
#: What it has to show.
SUBJECTS = (
    "queue_tasks", "queue_oldest_seconds", "tasks_ended_total", "task_run_seconds", "task_wait_seconds",
    "task_runs_total", "workers", "locks_waited_total", "lock_wait_seconds", "chat_sent_total", "rows_late_seconds",
    "logs_lag_seconds", "redis_memory_bytes",
)  # fmt: skip
UNITS = {"bytes", "ops", "percentunit", "s", "short"}


def wrong(thing: dict[str, Any], schema: dict[str, type]) -> list[str]:
    return [name for name, kind in schema.items() if type(thing.get(name)) is not kind]


def test_the_dashboard_has_the_fields_of_its_schema() -> None:
    assert wrong(DASHBOARD, OF_DASHBOARD) == []
    assert len(DASHBOARD["uid"]) <= 40
    assert DASHBOARD["schemaVersion"] >= 36
    assert {"from", "to"} <= DASHBOARD["time"].keys()
    assert isinstance(DASHBOARD["annotations"]["list"], list)
    [variable] = DASHBOARD["templating"]["list"]
    assert (variable["type"], variable["query"]) == ("datasource", "prometheus")


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_has_the_fields_of_its_schema(panel: dict[str, Any]) -> None:
    assert panel["type"] in {"row", "timeseries"}
    assert wrong(panel, OF_ANY_PANEL if panel["type"] == "row" else OF_CHART) == []
    assert set(panel["gridPos"]) == {"x", "y", "w", "h"}
    if panel["type"] == "row":
        assert (panel["panels"], panel["collapsed"]) == ([], False)
        return
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
    assert isinstance(panel["fieldConfig"]["overrides"], list)
    assert [wrong(target, OF_TARGET) for target in panel["targets"]] == [[]] * len(panel["targets"])
    assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0
    sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
    assert all(each == {"type": "prometheus", "uid": "${datasource}"} for each in sources)


def test_panels_have_ids_of_their_own_and_lie_beside_each_other() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    places = [panel["gridPos"] for panel in PANELS]
    assert all(each["x"] >= 0 and each["x"] + each["w"] <= 24 and each["h"] > 0 for each in places)
    for one, other in combinations(places, 2):
        is_apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert is_apart, (one, other)


def test_it_asks_only_for_figures_that_there_are_with_labels_that_they_have(redis: Redis) -> None:
    text = expose("")[0].decode()
    declared = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    there = {*declared, *(f"{name}_bucket" for name, kind in declared.items() if kind == "histogram")}

    asked = {name for each in EXPRESSIONS for name in re.findall(r"\bcomponents_\w+", each)}

    assert asked - there == set()
    figures = {name.removesuffix("_bucket") for name in asked}
    for subject in SUBJECTS:
        assert f"components_{subject}" in figures


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_is_balanced_and_rates_are_of_counters(expression: str) -> None:
    for opening, closing in ("()", "[]", "{}"):
        assert expression.count(opening) == expression.count(closing)
    for name in re.findall(r"rate\((components_\w+)", expression):
        assert name.endswith(("_total", "_bucket"))
    for name in re.findall(r"(components_\w+_(?:total|bucket))(?!\w)", expression):
        assert re.search(rf"rate\({name}(\{{[^}}]*\}})?\[\$__rate_interval\]\)", expression)
