"""The blocked sampler: its conditionals, its long run, its joint distribution."""
