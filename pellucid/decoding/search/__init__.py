"""The searches, over anything that has ``start`` and ``step``; ``search`` chooses among them."""
