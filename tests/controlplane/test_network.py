"""Every address is this machine's, nobody else's, and given back."""

import socket

import pytest

from tests.controlplane.network import Network


def test_test_runs_do_not_meet_and_leave_nothing() -> None:
    one, other = Network(), Network()
    addresses = [network.address() for network in (one, other) for _ in range(3)]
    assert len(set(addresses)) == 6
    for address in addresses:
        with socket.create_server((address, 0)) as server, socket.create_connection(server.getsockname()) as client:
            assert client.getpeername()[0] == address
    for network in (one, other, one):  # once more does no harm
        network.close()
    for address in addresses:
        with pytest.raises(OSError, match="Cannot assign requested address"):
            socket.create_server((address, 0))
