# Makes connections to a name as fast as it can, in several processes, until there were as
# many as wanted, or the time is over and there were enough. Prints for each process how
# many there were. Arguments: a port, how many, how many are enough, the time in seconds.
import errno
import os
import socket
import struct
import sys
import time

PROCESSES = 4
RESET_ON_CLOSE = struct.pack("ii", 1, 0)

port, wanted, enough, seconds = map(int, sys.argv[1:])
address = socket.getaddrinfo("web.test", port, socket.AF_INET)[0][4]
end = time.monotonic() + seconds


# One process waits for an answer or a reset, the others do not even wait for the connection
# to be made.
def attempt(is_patient):
    kind = socket.SOCK_STREAM if is_patient else socket.SOCK_STREAM | socket.SOCK_NONBLOCK
    with socket.socket(socket.AF_INET, kind) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        if not is_patient:
            return client.connect_ex(address) == errno.EINPROGRESS
        client.settimeout(100)
        try:
            client.connect(address)
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            client.recv(1)
        except (ConnectionResetError, BrokenPipeError):
            pass
        return True


def flood(is_patient):
    count = 0
    while count < wanted // PROCESSES:
        if time.monotonic() > end and count >= enough // PROCESSES:
            break
        count += attempt(is_patient)
    os.write(1, b"%d\n" % count)


for number in range(PROCESSES):
    if os.fork() == 0:
        flood(is_patient=number == 0)
        os._exit(0)
for _ in range(PROCESSES):
    assert os.wait()[1] == 0
