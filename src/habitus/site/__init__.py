"""A site: cameras with their documents, models and events in one folder.

An archive has recordings as its sources: `pattern` names them by camera and time, `places` reads
them where they lie, `shard_reading` makes a shard of documents of each, `shard_store` keeps them,
`camera_models` learns, `shard_judging` finds what is unusual, within one budget; `overview` and
`archive_page` show all. A live camera has a process of its own (`process`, `pipe_messages`), in
which `watcher` judges, records, and keeps `footage`: shards that `model_work` learns from.
"""
