"""One camera for weeks: a process that watches, records and keeps documents to learn from."""
