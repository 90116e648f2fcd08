"""Run one benchmark: `python -m benchmarks <name>`. docs/benchmarks.md says what each benchmark measures."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from types import ModuleType

from benchmarks.catalogue import BENCHMARKS, Benchmark
from benchmarks.harness import Crew, System, say, standing_bench, standing_database
from benchmarks.report import print_conditions


def main() -> None:
    name, options = read_options()
    benchmark = BENCHMARKS[name]
    with ExitStack() as stack:
        database = ""
        if benchmark.database and not stack.enter_context(standing_database()):
            if benchmark.database == "needed":
                sys.exit("This needs PostgreSQL: install it, and pip install -r benchmarks/requirements.txt")
            database = "no PostgreSQL"
        if not benchmark.is_alone:
            bench = stack.enter_context(standing_bench(tcp=options.tcp, site=benchmark.site))
            if benchmark.database and not database:
                database = f"PostgreSQL {postgres_version()}"
            print_conditions(bench.redis, database, conditions(benchmark, options))
            crew = stack.enter_context(Crew(benchmark.crew))
            module = import_module(f"benchmarks.{name}")
            check_names(options.only, known_systems(module), "peers")
            module.run(bench, crew, options)
        else:
            import_module(f"benchmarks.{name}").run(options)
        say("")


def read_options() -> tuple[str, Namespace]:
    parser = ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="name", required=True)
    for name, benchmark in BENCHMARKS.items():
        command = commands.add_parser(name, help=benchmark.about, description=benchmark.about)
        for size, (usual, quick, what) in benchmark.sizes.items():
            kind = type(usual)
            command.add_argument(f"--{size}", type=kind, help=f"{what} ({usual!r}; quick: {quick!r})")
        command.add_argument(
            "--quick", action="store_true", help="Use small sizes, to check that everything works."
        )
        if not benchmark.has_proxy and not benchmark.is_alone:
            command.add_argument(
                "--tcp",
                action="store_true",
                help="Connect by TCP on this machine instead of the Unix socket.",
            )
        only = "Measure only these peers beside ours (names with commas between); '' for none."
        if benchmark.has_peers:
            command.add_argument("--only", type=_names, help=only)
        if benchmark.parts:
            parts = f"Run only these parts of {','.join(benchmark.parts)}."
            command.add_argument("--parts", type=_names, default=benchmark.parts, help=parts)
    options = parser.parse_args(namespace=Namespace(tcp=False, only=None, parts=()))
    check_names(options.parts, BENCHMARKS[options.name].parts, "parts")
    for size, (usual, quick, _) in BENCHMARKS[options.name].sizes.items():
        key = size.replace("-", "_")
        if getattr(options, key) is None:
            setattr(options, key, quick if options.quick else usual)
    return options.name, options


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def known_systems(module: ModuleType) -> list[str]:
    """Return the names of all systems that a benchmark has, those that are not installed included."""
    lists = (value for value in vars(module).values() if isinstance(value, list))
    return [each.name for found in lists for each in found if isinstance(each, System)]


def check_names(wanted: Sequence[str] | None, known: Sequence[str], what: str) -> None:
    unknown = [name for name in wanted or () if name not in known]
    if known and unknown:
        sys.exit(f"There are no {what} called {', '.join(unknown)}; known are {', '.join(known)}.")


def conditions(benchmark: Benchmark, options: Namespace) -> str:
    sizes = (
        f"{size} {getattr(options, size.replace('-', '_')):,}"
        for size in benchmark.sizes
        if not isinstance(benchmark.sizes[size][0], str)
    )
    return ", ".join(sizes)


def postgres_version() -> str:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return str(cursor.fetchone()[0].split()[0])


if __name__ == "__main__":
    main()
