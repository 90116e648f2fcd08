"""/healthz, /readyz and /metrics, for a project to include: path("", include("components.observing.urls"))."""
