"""What benchmarks of logs share: made-up ranges and lines (lines.py), and the rates of kernels (kernels.py)."""
