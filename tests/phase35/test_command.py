"""The command trains in the way that its options ask for."""

from __future__ import annotations

import json
import os

import pytest
import torch.distributed as dist
from minidp.train import main


def steps_of_command(arguments, folder):
    """Return the steps that the command reports, run by one rank in a group of its own."""
    dist.destroy_process_group()
    alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "0"}
    os.environ |= alone
    main([*arguments, "--metrics", str(folder)])
    rows = (folder / "rank0.jsonl").read_text().splitlines()
    return [json.loads(row)["step"] for row in rows], dist.is_initialized()


@pytest.mark.parametrize("sync", ["bucket", "overlap"])
def test_the_command_trains_as_many_steps_as_asked_for(run_ranks, tmp_path, sync):
    arguments = ["--sync", sync, "--steps", "2", "--num-train", "61", "--num-test", "7"]
    (found,) = run_ranks(steps_of_command, world_size=1, args=(arguments, tmp_path))
    assert found == ([0, 1, 2], False)
