"""Video to documents: clips, decoding in processes, resuming, live sources."""
