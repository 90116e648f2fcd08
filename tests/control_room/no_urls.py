"""A project without an admin."""

urlpatterns: list[object] = []
