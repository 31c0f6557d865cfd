"""The learner's working tree: apply, revert, recover, and the record that makes it safe."""
