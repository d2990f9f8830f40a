"""Documents, recordings and videos as text, read in a process of its own.

The libraries that read these formats are large, and an agent may have written the file. So they run
neither in the kernel nor in the server.
"""
