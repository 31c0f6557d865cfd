"""Proofs on scratch copies, from a warm parent, in parallel."""
