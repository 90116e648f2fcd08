"""
News: a hint to who waits that there is something to look at. Nothing is stored, so nothing depends on it but time.

Scripts publish on the channel of what they change; coroutines wait for that by a Listener.
"""

from components.kit.news.channels import channel
from components.kit.news.listeners import Interest, Listener
from components.kit.news.turns import Turns

__all__ = ["Interest", "Listener", "Turns", "channel"]
