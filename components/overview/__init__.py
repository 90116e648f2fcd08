"""The overview: the first page of the control room. Each service says in report.py what it contributes."""
