"""minidp: data-parallel training, small enough to read in an afternoon."""
