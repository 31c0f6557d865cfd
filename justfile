# Recipes for learners: `just dp-train`, `just dp-train --sync micro-batch --steps 20`.

ranks := "2"

# Train the lab on this machine's cores (`just ranks=4 dp-train ...` for another number of ranks)
dp-train *args:
    cd labs/phase35/src && OMP_NUM_THREADS=1 torchrun --standalone --nproc-per-node {{ranks}} -m minidp.train {{args}}

# The lab's invariants
dp-test *args:
    python -m pytest tests/phase35 {{args}}
