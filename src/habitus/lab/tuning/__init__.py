"""Selection of a model without labels, and an estimate of its recall."""
