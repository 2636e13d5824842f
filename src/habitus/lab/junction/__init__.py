"""A rendered video of a signalised junction, with traffic and labelled anomalies."""
