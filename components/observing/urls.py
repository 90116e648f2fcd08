"""The addresses for probes and for Prometheus. They have no slash at the end, as is usual for them."""

from django.urls import path

from components.observing.views import healthz, metrics, readyz

app_name = "components-observing"

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
]
