# Sends messages to the agent's server of names, by UDP and by TCP, and prints for each
# the code of its answer: `none` if there is no answer, `closed` if the connection ends.
# Arguments in hexadecimal digits: a good question, and the messages. The good question
# follows each message, and has to be answered.
import socket
import sys

SERVER = ("198.18.0.53", 53)
good, *messages = map(bytes.fromhex, sys.argv[1:])


def code(answer):
    return answer[3] & 15


def ask_by_datagram(message):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(100)
        client.connect(SERVER)
        client.send(message)
        client.send(good)
        first = client.recv(1000)
        if first[:2] == good[:2]:
            assert code(first) == 0
            return "none"
        second = client.recv(1000)
        assert second[:2] == good[:2] and code(second) == 0
        return code(first)


def ask_by_stream(message):
    with socket.create_connection(SERVER, 100) as client:
        answers = client.makefile("rb")
        try:
            for question in (message, good):
                client.sendall(len(question).to_bytes(2, "big") + question)
            first = answers.read(int.from_bytes(answers.read(2), "big"))
            if not first:
                return "closed"
            second = answers.read(int.from_bytes(answers.read(2), "big"))
        except (ConnectionResetError, BrokenPipeError):
            return "closed"
        assert second[:2] == good[:2] and code(second) == 0
        return code(first)


for message in messages:
    print(ask_by_datagram(message), ask_by_stream(message))
