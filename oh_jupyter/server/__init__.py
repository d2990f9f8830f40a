"""The gateway: REST requests to kernels and back. It holds no runtime of its own."""
