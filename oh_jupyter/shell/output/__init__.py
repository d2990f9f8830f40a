"""What a terminal has printed: buffered, split at markers, rendered."""
