#!/usr/bin/env python3
"""A small client of the vmcell protocol, generation 1, written from PROTOCOL.md alone.

    client.py SOCKET [--] COMMAND [ARGUMENT...]    runs a command in the foreground
    client.py SOCKET --ping                        shows the agent's build and capabilities

It connects to the agent at the Unix socket SOCKET. Standard input is forwarded unless it is a terminal. The exit code
is that of the command; 128 + N if signal N ended it, 124 after a timeout, 137 if it was killed, and 125 if the agent
failed or violated the protocol. SIGINT and a closed output cancel the command; a second SIGINT ends the client.
The agent is not trusted: whatever it sends is checked before it is used.
"""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import signal
import socket
import struct
import sys
import threading
from dataclasses import dataclass
from typing import Callable

# Limits of the protocol (and of Linux: the greatest signal).
MAX_PAYLOAD, MAX_WINDOW, MAX_BUILD, MAX_FAILURE_TEXT, MAX_SIGNAL = 262144, 16777216, 64, 256, 64
MAGIC, GENERATION, BUILD = b"vmc1", 1, b"client.py 0.1"
# Choices of this client: the credit of the agent on each output, bytes of input in a frame, the only stream, seconds.
WINDOW, CHUNK, STREAM, ACK_TIMEOUT = 1 << 20, 1 << 16, 1, 5.0
CAPABILITIES = """processes power-off files terminals services ports clock trees disk-report terminal-reads
    snapshots network process-count secrets trust-store""".split()
PROCESSES = 1 << CAPABILITIES.index("processes")
STDIN, STDOUT, STDERR = 0, 1, 2  # Channels; also descriptors of this program.
# Kinds of frames. The last three are added to the number of a channel.
HELLO, OPEN, EVENT, CLOSE, CANCEL, ACK, DATA, END, CREDIT = 1, 2, 3, 4, 5, 6, 0x10, 0x20, 0x30
HEADER = struct.Struct("<IHBB")  # The length, the lower 16 and the upper 8 bits of the stream, the kind.
# The kinds that an agent may send, with the least and the greatest length of their payloads.
LENGTHS = {kind: (1, MAX_PAYLOAD) for kind in (HELLO, EVENT, CLOSE, DATA + STDOUT, DATA + STDERR)}
LENGTHS.update({END + STDOUT: (0, 0), END + STDERR: (0, 0), CREDIT + STDIN: (4, 4)})
# Numbers of variants.
REQUEST_PING, REQUEST_START, EVENT_STARTED, STDIN_EMPTY, STDIN_STREAM = 0, 1, 0, 0, 1
OUTCOME_FAILED, OUTCOME_PONG, OUTCOME_EXITED = 0, 1, 2
CAUSE_CODE, CAUSE_SIGNAL, CAUSE_TIMEOUT, CAUSE_OUT_OF_MEMORY, CAUSE_KILLED = range(5)
FAILURE_KINDS = {0: "Invalid", 1: "NotFound", 2: "Denied", 3: "Limit", 4: "Unsupported", 5: "Other", 6: "Conflict"}
EXIT_FAILURE, EXIT_SIGNAL = 125, 128
EXIT_CODES = {CAUSE_TIMEOUT: 124, CAUSE_OUT_OF_MEMORY: 137, CAUSE_KILLED: 137}


class Failed(Exception):
    """The agent could not serve the request, or violated the protocol."""


def check(condition: bool, violation: str) -> None:
    if not condition:
        raise Failed(f"protocol error: {violation}")


def encode_varint(number: int) -> bytes:
    if number <= 0x7F:
        return bytes([number])
    return bytes([number & 0x7F | 0x80]) + encode_varint(number >> 7)


def encode_bytes(data: bytes) -> bytes:
    return encode_varint(len(data)) + data


def encode_hello() -> bytes:
    hello = MAGIC + encode_varint(GENERATION) + encode_bytes(BUILD)
    return hello + encode_varint(PROCESSES) + encode_varint(WINDOW) + bytes(16)  # capabilities, window, boot_id


def encode_start(argv: list[bytes], stdin: int) -> bytes:
    ticket = secrets.randbits(64)
    start = encode_varint(REQUEST_START) + encode_varint(ticket) + encode_bytes(b"client-%x" % ticket)  # a unique tag
    start += encode_bytes(b"".join(argument + b"\0" for argument in argv))
    start += encode_bytes(b"") + b"\1" + encode_bytes(b"") + b"\0"  # env, default_env, cwd, make_cwd
    start += encode_bytes(b"") + b"\0\0" + encode_bytes(b"")  # user, umask (None), nice, rlimits
    return start + encode_varint(stdin) + b"\0\0\0" + b"\0\0\0"  # mode (Foreground), timeout_ms, keep; limits


class Decoder:
    """Reads the fields of a message one after the other. In texts, what could affect a terminal is replaced."""

    def __init__(self, payload: bytes) -> None:
        self.rest = payload

    def take(self, count: int) -> bytes:
        check(count <= len(self.rest), "a message is too short")
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def varint(self, bits: int) -> int:
        """Reads a number of so many bits. A bool has one."""
        number, shift, byte = 0, 0, 0x80
        while byte > 0x7F:
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            shift += 7
            check(number < 1 << bits and shift < bits + 7, "a number is too large")
        return number

    def text(self, limit: int) -> str:
        length = self.varint(32)
        check(length <= limit, "a text is too long")
        return "".join(c if c.isprintable() else "?" for c in self.take(length).decode("utf-8"))

    def finish(self) -> None:
        check(not self.rest, "a message is too long")


def decode_hello(payload: bytes) -> tuple[str, int, int]:
    """Returns the agent's build, capabilities and window."""
    message = Decoder(payload)
    check(message.take(len(MAGIC)) == MAGIC, "its magic number is wrong")
    check(message.varint(16) >= GENERATION, "its generation is 0")
    build, capabilities, window = message.text(MAX_BUILD), message.varint(64), message.varint(32)
    check(window <= MAX_WINDOW, "its window is too large")
    message.take(16)  # boot_id
    message.finish()
    return build, capabilities, window


def decode_outcome(payload: bytes, expected: int) -> Decoder:
    """Returns the fields of the outcome if it is the expected one."""
    message = Decoder(payload)
    number = message.varint(32)
    if number == OUTCOME_FAILED:
        kind, _errno, _stage = message.varint(32), message.varint(16), message.varint(32)
        text = message.text(MAX_FAILURE_TEXT)
        message.finish()
        raise Failed(f"{FAILURE_KINDS.get(kind, 'Other')}: {text}")
    if number != expected:
        raise Failed(f"the agent answered with the unexpected outcome {number}")
    return message


def decode_exit(message: Decoder) -> tuple[int, list[int]]:
    """Returns the exit code for this program, and how many bytes the command wrote to each output."""
    cause = message.varint(32)
    if cause > CAUSE_KILLED:
        raise Failed(f"the command ended for the unknown cause {cause}")
    number = message.take(1)[0] if cause in (CAUSE_CODE, CAUSE_SIGNAL) else 0
    check(cause != CAUSE_SIGNAL or 1 <= number <= MAX_SIGNAL, "there is no such signal")
    code = EXIT_SIGNAL + number if cause == CAUSE_SIGNAL else EXIT_CODES.get(cause, number)
    _user, _system, _rss, _wall, stdout, stderr = [message.varint(64) for _ in range(6)]
    _outputs_cut, _oom_kills, has_tree_ended = message.varint(1), message.varint(32), message.varint(1)
    _tree_ended = message.varint(1) if has_tree_ended else None
    message.finish()
    return code, [stdout, stderr]


class Link:
    """A connection to an agent. A thread sends, so that the receiver never waits for the agent to receive."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.reader = self.socket.makefile("rb")
        self.outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.sender = threading.Thread(target=self.send_outgoing, daemon=True)
        self.sender.start()
        self.send(HELLO, encode_hello(), stream=0)
        self.build, self.capabilities, self.window = decode_hello(self.receive(stream=0)[1])

    def send(self, kind: int, payload: bytes = b"", stream: int = STREAM) -> None:
        if len(payload) > MAX_PAYLOAD:
            raise Failed("the command is too long")
        self.outgoing.put(HEADER.pack(len(payload), stream & 0xFFFF, stream >> 16, kind) + payload)

    def send_outgoing(self) -> None:
        with contextlib.suppress(OSError):  # The receiver notices that the link is lost.
            for frame in iter(self.outgoing.get, None):
                self.socket.sendall(frame)

    def read(self, count: int) -> bytes:
        data = self.reader.read(count)
        check(len(data) == count, "the link ended")
        return data

    def receive(self, stream: int = STREAM) -> tuple[int, bytes]:
        """Receives the kind and the payload of a frame: a hello on the stream 0, else any other."""
        length, low, high, kind = HEADER.unpack(self.read(HEADER.size))
        least, greatest = LENGTHS.get(kind, (1, 0))
        check(least <= length <= greatest, f"a frame of the kind {kind:#04x} has {length} bytes")
        check(low | high << 16 == stream and (kind == HELLO) == (stream == 0), "a frame is on the wrong stream")
        return kind, self.read(length)

    def receive_close(self, handle: Callable[[int, bytes], None]) -> bytes:
        """Handles all frames up to the close of the stream, acknowledges it, and returns its payload."""
        kind, payload = self.receive()
        while kind != CLOSE:
            handle(kind, payload)
            kind, payload = self.receive()
        self.send(ACK)
        self.outgoing.put(None)  # Ends the thread: whatever is put into the queue later is not sent.
        self.sender.join(ACK_TIMEOUT)
        return payload


@dataclass
class Output:
    credit: int = WINDOW  # How many bytes the agent may still send.
    received: int = 0
    ended: bool = False


class Command:
    """A command in the foreground, with the standard input and outputs of this program."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.started = self.cancelled = False
        self.outputs = {STDOUT: Output(), STDERR: Output()}
        self.input_credit, self.credit_changed = link.window, threading.Condition()

    def run(self, argv: list[bytes]) -> int:
        has_input = not os.isatty(STDIN)
        self.link.send(OPEN, encode_start(argv, STDIN_STREAM if has_input else STDIN_EMPTY))
        signal.signal(signal.SIGINT, self.cancel)
        if has_input:
            threading.Thread(target=self.forward_input, daemon=True).start()
        outcome = self.link.receive_close(self.handle)
        code, written = decode_exit(decode_outcome(outcome, OUTCOME_EXITED))
        received = [output.received if output.ended else None for output in self.outputs.values()]
        check(received == written or self.cancelled, "an exit before the end of the outputs")
        return code

    def cancel(self, *_signal: object) -> None:
        self.cancelled = True
        self.link.send(CANCEL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def forward_input(self) -> None:
        data = None
        while data != b"":
            with self.credit_changed:
                self.credit_changed.wait_for(lambda: self.input_credit > 0)
            data = b""
            with contextlib.suppress(OSError):  # A failure is treated as the end of the input.
                data = os.read(STDIN, min(CHUNK, self.input_credit))
            with self.credit_changed:
                self.input_credit -= len(data)
            self.link.send((DATA if data else END) + STDIN, data)

    def handle(self, kind: int, payload: bytes) -> None:
        if kind == EVENT:
            self.started |= Decoder(payload).varint(32) == EVENT_STARTED  # All other events are ignored.
        elif kind == CREDIT + STDIN:
            with self.credit_changed:
                self.input_credit += int.from_bytes(payload, "little")
                check(payload != bytes(4) and self.input_credit <= MAX_WINDOW, "no credit, or too much")
                self.credit_changed.notify()
        elif kind in (END + STDOUT, END + STDERR):
            self.outputs[kind - END].ended = True
        else:
            self.copy(kind - DATA, payload)

    def copy(self, channel: int, data: bytes) -> None:
        """Writes data of an output, and grants new credit when half of the window is used up."""
        output = self.outputs[channel]
        check(self.started and not output.ended and len(data) <= output.credit, "data out of order or without credit")
        output.received, output.credit = output.received + len(data), output.credit - len(data)
        while data and not self.cancelled:
            try:
                data = data[os.write(channel, data) :]
            except BrokenPipeError:
                self.cancel()
        if output.credit <= WINDOW // 2:
            self.link.send(CREDIT + channel, struct.pack("<I", WINDOW - output.credit))
            output.credit = WINDOW


def ping(link: Link) -> int:
    link.send(OPEN, encode_varint(REQUEST_PING))
    outcome = link.receive_close(lambda kind, _payload: check(kind == EVENT, "data in answer to a ping"))
    decode_outcome(outcome, OUTCOME_PONG).finish()
    print(link.build, *(name for bit, name in enumerate(CAPABILITIES) if link.capabilities >> bit & 1), sep="\n")
    return 0


def main(path: str, *arguments: str) -> int:
    try:
        link = Link(path)
        if arguments == ("--ping",):
            return ping(link)
        if not link.capabilities & PROCESSES:
            raise Failed("the agent cannot run commands")
        return Command(link).run([os.fsencode(argument) for argument in arguments[arguments[0] == "--" :]])
    except (Failed, OSError, UnicodeError) as error:
        print(f"client: {error}", file=sys.stderr)
        return EXIT_FAILURE


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[2:] == ["--"] or None in (sys.stdin, sys.stdout, sys.stderr):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
