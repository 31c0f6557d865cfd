"""From YAML to values: specs, manifests and the project file, each error with its place."""
