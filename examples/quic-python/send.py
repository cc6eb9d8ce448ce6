"""Sends the lines of a file as events to a Headgate in a session over QUIC (docs/quic.md).

    pip install aioquic
    python send.py --stream STREAM FILE [--address HOST:PORT] [--ca FILE] [--token TOKEN]

It prints what became of the events, names those that were rejected, and exits 1 if there are any, or if something is not
acknowledged. It is an example of the protocol: it holds the whole file, and goes on with its session when a connection is lost.
"""

import argparse
import asyncio
import collections
import json
import os
import random
import secrets
import socket
import ssl
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated

HELLO, EVENTS, FIN = 1, 2, 3
WELCOME, ACK, RESULT, REJECT, CREDIT, SLOWDOWN, GOAWAY, ERROR = range(16, 24)
DURABLE, LINES = 2, 1
DEVELOPMENT = "headgate-data/development.crt"  # that of a gateway which was started here
HANDSHAKE = 2  # seconds, within which an answer comes or UDP does not come through


ALERTS = range(0x100, 0x200)  # CRYPTO_ERROR with an alert of TLS (RFC 9001 section 4.8)
NO_PROTOCOL, REFUSED = 0x178, 0x02


class Refused(Exception):
    """What sending again does not mend."""


class Connection(QuicConnectionProtocol):
    """A connection that knows of what it ended."""

    ended = None

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            self.ended = event
        super().quic_event_received(event)


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def text(s):
    raw = s.encode()
    return varint(len(raw)) + raw


def frame(kind, payload=b""):
    return varint(kind) + varint(len(payload)) + payload


async def read_varint(reader):
    value = shift = 0
    while True:
        byte = (await reader.readexactly(1))[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7


async def read_frame(reader):
    kind = await read_varint(reader)
    length = await read_varint(reader)
    return kind, Fields(await reader.readexactly(length))


class Fields:
    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def varint(self):
        value = shift = 0
        while True:
            byte = self.raw[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def text(self):
        n = self.varint()
        self.at += n
        return self.raw[self.at - n : self.at].decode()


class Session:
    """What outlives a connection."""

    def __init__(self, stream, token, events, per_frame):
        self.stream, self.token = stream, token
        self.name = secrets.token_hex(16)
        self.events, self.per_frame = events, per_frame
        self.acked = 0  # everything up to it has its outcome
        self.heard = set()  # first sequences of frames whose RESULT has come
        self.counts = collections.Counter()

    def hello(self):
        payload = varint(1) + text(self.stream) + text(self.name) + text(self.token) + text("")
        return frame(HELLO, payload + varint(DURABLE) + varint(self.acked) + varint(0))

    async def run(self, reader, writer):
        writer.write(self.hello())
        kind, f = await read_frame(reader)
        if kind == ERROR:
            self.error(f)
        f.text()
        settled, credit = f.varint(), f.varint()
        at = max(settled, self.acked)
        finished = False
        while True:
            while credit > 0 and at < len(self.events):
                some = self.events[at : at + self.per_frame]
                payload = varint(at + 1) + varint(len(some)) + varint(LINES) + varint(0) + b"".join(e + b"\n" for e in some)
                writer.write(frame(EVENTS, payload))
                credit -= len(payload)
                at += len(some)
            if at == len(self.events) and not finished:
                writer.write(frame(FIN))
                writer.write_eof()
                finished = True
            kind, f = await read_frame(reader)
            if kind == ACK:
                level, up_to = f.varint(), f.varint()
                if level >= DURABLE:
                    self.acked = max(self.acked, up_to)
            elif kind == RESULT:
                first, _, _ = f.varint(), f.varint(), f.varint()
                if first not in self.heard:
                    self.heard.add(first)
                    for name in ("accepted", "filtered", "rejected", "duplicates", "deadlettered"):
                        self.counts[name] += f.varint()
            elif kind == REJECT:
                seq, _ = f.varint(), f.varint()
                print(f"event {seq}: {f.text()}: {f.text()}", file=sys.stderr)
            elif kind == CREDIT:
                credit += f.varint()
            elif kind == SLOWDOWN:
                print(f"held for {f.varint()} ms: {f.text()}", file=sys.stderr)
            elif kind == GOAWAY:
                raise ConnectionError("the gateway stops")
            elif kind == ERROR:
                self.error(f)
            elif kind == FIN:
                return

    def error(self, f):
        retryable, code, detail = f.varint(), f.text(), f.text()
        raise (ConnectionError if retryable else Refused)(f"{code}: {detail}")


async def handshake(connection, address):
    done = asyncio.ensure_future(connection.wait_connected())
    done.add_done_callback(lambda d: d.cancelled() or d.exception())
    if not (await asyncio.wait({done}, timeout=HANDSHAKE))[0]:
        raise ConnectionError(f"no answer from {address} within {HANDSHAKE} s: is that the gateway's UDP port (`quic` in its run.json)?")
    try:
        await done
    except ConnectionError as lost:
        code, why = (connection.ended.error_code, connection.ended.reason_phrase) if connection.ended else (REFUSED, str(lost))
        if code == NO_PROTOCOL:
            raise Refused(f"{address} does not speak headgate/1 ({why}); is that the gateway's UDP port (`quic` in its run.json)?")
        if code in ALERTS:
            raise Refused(f"the certificate of {address} is not taken ({why}); a self-signed one needs --ca FILE or --insecure, "
                          "and it must be for the host in --address")
        if "version" in why:
            raise Refused(f"{address} speaks another version of QUIC: {why}")
        raise ConnectionError(f"the handshake with {address} failed: {why}")


async def send(options, session):
    host, _, port = options.address.rpartition(":")
    if not host or not port.isdigit():
        raise Refused(f"--address {options.address}: not HOST:PORT, such as 127.0.0.1:8443")
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["headgate/1"], server_name=host)
    if options.ca:
        try:  # aioquic reads it in the handshake only
            ssl.create_default_context().load_verify_locations(cafile=options.ca)
        except (OSError, ssl.SSLError) as wrong:
            raise Refused(f"--ca {options.ca}: {wrong}; it must be a file of certificates in PEM, such as DIR/development.crt of the gateway")
        configuration.load_verify_locations(cafile=options.ca)
    if options.insecure:
        configuration.verify_mode = ssl.CERT_NONE
    for attempt in range(options.attempts):
        if attempt > 0:
            await asyncio.sleep(random.random() * min(10, 0.1 * 2**attempt))
        try:
            async with connect(host, int(port), configuration=configuration, create_protocol=Connection, wait_connected=False) as connection:
                connection.transmit()
                await handshake(connection, options.address)
                reader, writer = await connection.create_stream()
                await session.run(reader, writer)
            return session.acked == len(session.events)
        except socket.gaierror as unknown:
            raise Refused(f"--address {options.address}: {unknown.strerror}")
        except (ConnectionError, asyncio.IncompleteReadError) as lost:
            print(f"connection: {lost}", file=sys.stderr)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stream", required=True, help="of the gateway; made when it is not there, if the gateway makes streams")
    parser.add_argument("file", help="an event a line")
    parser.add_argument("--address", default="127.0.0.1:8443", help="HOST:PORT of the gateway's UDP listener")
    parser.add_argument("--ca", default=DEVELOPMENT if os.path.exists(DEVELOPMENT) else None,
                        help="certificates of who may have signed the gateway's, besides those of the system; default: " + DEVELOPMENT)
    parser.add_argument("--token", default="", help="where the gateway has tokens: the bearer token itself")
    parser.add_argument("--batch", type=int, default=500, help="events a frame; default: %(default)s")
    parser.add_argument("--attempts", type=int, default=10, help="connections in a row without anything new; default: %(default)s")
    parser.add_argument("--insecure", action="store_true", help="take any certificate, such as the one for development")
    options = parser.parse_args()
    try:
        with open(options.file, "rb") as file:
            events = [line.strip() for line in file if line.strip()]
    except OSError as wrong:
        sys.exit(f"{options.file}: {wrong.strerror}")
    session = Session(options.stream, options.token, events, options.batch)
    try:
        whole = asyncio.run(send(options, session))
    except Refused as refused:
        sys.exit(f"refused: {refused}")
    print(json.dumps({"sent": sum(session.counts.values()), **session.counts}))
    sys.exit(0 if whole and session.counts["rejected"] == 0 else 1)


if __name__ == "__main__":
    main()
