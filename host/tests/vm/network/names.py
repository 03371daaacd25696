# Looks up names with the C library, fetches a page of each, and prints what happens.
# Arguments: a port, and the names.
import socket
import sys

port = int(sys.argv[1])
for name in sys.argv[2:]:
    try:
        # As bytes, so that Python does not check it.
        connection = socket.create_connection((name.encode(), port), 100)
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        while data := connection.recv(1000):
            last = data
        print(last.splitlines()[-1].decode())
    except socket.gaierror as error:
        print(error.strerror)
