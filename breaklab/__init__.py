"""breaklab: learn to debug distributed training by breaking it, one real bug at a time."""

__version__ = "0.1.0"
