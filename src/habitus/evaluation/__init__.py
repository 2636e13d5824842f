"""How good a model is, against a truth."""
