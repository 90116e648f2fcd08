"""
Benchmarks of components and other systems: `python -m benchmarks <name>`. docs/benchmarks.md says what each measures.

catalogue.py  all benchmarks, how much each of them does, and what it needs
harness.py    the private server, turns of all systems, what a turn costs, workers, processes that begin together
report.py     conditions, tables and bars
<name>.py     a benchmark: its systems with their guarantees, its turns, its bars
peers/        other task queues; those in Python in a module each, because its worker imports that
results/      what earlier runs printed, a file for each day
"""
