"""Comparison of the methods of the paper, the default model of habitus and baselines."""
