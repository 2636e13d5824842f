"""Reports for people: an HTML page, annotated video, figures, and summaries in numbers."""
