"""Stores on S3, Google Cloud Storage, or any fsspec URL."""
