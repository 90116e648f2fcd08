"""
News: a hint to who waits that there is something to look at. Nothing is stored, so nothing depends on it but time.

Scripts publish on the channel of what they change; coroutines wait for that by a Listener.
"""

from components.services.news.channels import channel
from components.services.news.listeners import Interest, Listener
from components.services.news.turns import Turns

__all__ = ["Interest", "Listener", "Turns", "channel"]
