"""The overview: the first page of the control room. Each service says in card.py what it contributes."""
