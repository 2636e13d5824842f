"""Archives: months of recordings of many cameras, of which only what is new is read.

`pattern` names recordings by camera and time, `places` reads them where they lie, `shard_reading`
makes a shard of documents of each, `shard_store` keeps them; `camera_models` learns, and
`shard_judging` finds what is unusual, within one budget; `overview` and `archive_page` show all.
"""
