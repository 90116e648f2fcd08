"""A site that mounts the probes and the metrics, and nothing else."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [path("", include("components.observing.urls"))]
