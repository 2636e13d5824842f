"""One way to run work: processes forked from one that has the code loaded, or a Dask cluster."""
