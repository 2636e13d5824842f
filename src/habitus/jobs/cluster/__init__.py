"""Workers of a Dask cluster: the only room that imports Dask (`pip install 'habitus[cluster]'`)."""

from habitus.errors import MissingPackageError
from habitus.jobs.workers import LocalWorkers, Workers


def open_workers(cluster: str | None = None, jobs: int = -1) -> Workers:
    """Return processes of this machine, or the workers of a cluster.

    `cluster` is None for plain processes, "local" for a Dask cluster on this machine, otherwise the
    address of a Dask scheduler; `jobs` the number of processes here, -1 for one per processor.
    """
    if cluster is None:
        return LocalWorkers(jobs)
    try:
        from habitus.jobs.cluster.pool import ClusterWorkers
    except ImportError as error:
        raise MissingPackageError(
            "a cluster needs Dask's distributed: pip install 'habitus[cluster]'",
            parameter="cluster",
        ) from error
    return ClusterWorkers(cluster, jobs)
