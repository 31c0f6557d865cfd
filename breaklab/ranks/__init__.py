"""Start ranks, watch them, and say why they stopped."""
