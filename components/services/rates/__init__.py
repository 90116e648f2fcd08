"""
Rate limits: at most so many calls in any period of some length, counted by the server's clock.

RateLimit counts calls, of tasks (`@task(rate="100/m")`), of views (view.py) and of anything else. See docs/rates.md.
"""

# Read limit.py and lua/take.lua, then view.py.

from components.services.rates.limit import RateLimit
from components.services.rates.reader import RateInfo, RateReader

__all__ = ["RateInfo", "RateLimit", "RateReader"]
