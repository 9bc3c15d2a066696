"""What every kernel file is held to: its tensors, its experiment, devices and targets, checks, errors."""
