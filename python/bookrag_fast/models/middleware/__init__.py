"""What lies between the engine and its models. `stack` says what, in which order, and why."""
