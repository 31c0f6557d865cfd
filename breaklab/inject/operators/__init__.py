"""Operators: the ways in which people really break data-parallel code, each a search for sites."""
