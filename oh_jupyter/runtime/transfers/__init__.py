"""Uploads and downloads, piece by piece."""
