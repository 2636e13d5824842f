"""Workers of a Dask cluster: the only room that imports Dask (`pip install 'habitus[cluster]'`)."""

from habitus.errors import MissingPackageError

try:
    import distributed as _distributed  # noqa: F401
except ImportError as error:
    raise MissingPackageError(
        "a cluster needs Dask's distributed: pip install 'habitus[cluster]'", parameter="cluster"
    ) from error

from habitus.cluster.pool import ClusterWorkers

__all__ = ["ClusterWorkers"]
