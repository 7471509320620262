"""Fits of Dask arrays, on chunks of rows."""
