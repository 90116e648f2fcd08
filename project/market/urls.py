"""The market's pages. Pages that change something accept POST only."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from components.services.rows.view import everybody, rows_view

from . import views
from .models import FlashSale

app_name = "market"

urlpatterns = [
    path("", views.browse, name="browse"),
    path("sell/", views.offer, name="offer"),
    path("mine/", views.mine, name="mine"),
    path("preferences/", views.preferences, name="preferences"),
    path("listings/<int:listing_id>/buy/", views.buy, name="buy"),
    path("listings/<int:listing_id>/withdraw/", views.withdraw, name="withdraw"),
    path("flash/", views.flash_sale, name="flash"),
    path("flash/<slug:slug>/buy/", views.buy_flash, name="buy-flash"),
    path(
        "flash/remaining",
        rows_view(FlashSale.cached, fields=["remaining", "ends_at"], readable=everybody),
        name="flash-remaining",
    ),
    path("login/", views.Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(next_page="market:browse"), name="logout"),
]
