"""What the services declare, collected from their modules: all scripts. (docs/keyspace.py collects the keys.)"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

import components
from components.kit.scripts import Script


def _scripts() -> Iterator[Script]:
    for found in walk_packages(components.__path__, "components."):
        if re.search(r"\.(migrations|runner|fixtures)\b", found.name):
            continue
        module = import_module(found.name)
        yield from (each for each in vars(module).values() if isinstance(each, Script))


#: All scripts by name.
SCRIPTS: dict[str, Script] = {
    script.name: script for script in sorted(_scripts(), key=lambda each: each.name)
}
