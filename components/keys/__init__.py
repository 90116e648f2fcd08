"""
The keyspace: every key of this app, its Redis type, and who lets it go.

A key reads <prefix>:<pattern>:{<name>}:<part>. The braces are a cluster's hash tag: all keys of one
entity lie in one slot, so that one script can change them together. What is stored carries the number
of its format, so that two releases can run beside each other during a deployment.

A module for each family of patterns; naming.py spells them.
"""

from components.keys.books import *  # noqa: F403
from components.keys.counters import *  # noqa: F403
from components.keys.geo import *  # noqa: F403
from components.keys.holdings import *  # noqa: F403
from components.keys.logs import *  # noqa: F403
from components.keys.messages import *  # noqa: F403
from components.keys.queues import *  # noqa: F403
from components.keys.rows import *  # noqa: F403
