"""Bridge between an agent's pipes and the socket of its tools in the kernel; also its program.

It copies bytes, and ends with either side. Agents start it like any MCP server, so it imports only
what Python has loaded in a few milliseconds.
"""

from __future__ import annotations

import _thread
import os
import socket
import sys

CHUNK_BYTES = 65536


def _connected(address: str) -> socket.socket:
    """Connect to a Unix socket, or to a port of the loopback interface on Windows."""
    if address.isdigit():
        return socket.create_connection(("127.0.0.1", int(address)))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    return connection


def _copy_input(connection: socket.socket) -> None:
    try:
        while chunk := os.read(0, CHUNK_BYTES):
            connection.sendall(chunk)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        os._exit(1)


def main(address: str) -> int:
    """Copy until either side ends; return the exit status."""
    try:
        connection = _connected(address)
    except OSError as error:
        print(f"oh_jupyter: the kernel with these tools has ended: {error}", file=sys.stderr)
        return 1
    _thread.start_new_thread(_copy_input, (connection,))
    try:
        while chunk := connection.recv(CHUNK_BYTES):
            while chunk:
                chunk = chunk[os.write(1, chunk) :]
    except OSError:
        return 1
    return 0


if __name__ == "__main__":
    # The other thread may wait for input.
    os._exit(main(sys.argv[1]))
