"""The addresses of the demo, with those of its tour."""

from django.urls import include, path

from project.urls import urlpatterns as demo

urlpatterns = [path("tour/", include("project.tour.urls")), *demo]
