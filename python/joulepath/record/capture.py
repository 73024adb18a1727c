"""The packets of an observed connection as a pcapng file, which Wireshark and tcpdump open.

Two interfaces, one at each host; Ethernet, IPv4 and TCP headers with the ECN bits and flags of the simulated packets, without
payload (the original length says how much there was). Format: IETF draft-ietf-opsawg-pcapng; ECN: RFC 3168.
"""

import struct
from typing import Any

HOSTS = (bytes.fromhex("020000000001"), bytes.fromhex("020000000002"))
ADDRESSES = (bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
PORTS = (40_000, 13_562)  # the second is where Hadoop serves map outputs
SYN, ACK, ECE, CWR = 0x02, 0x10, 0x40, 0x80
MASK = 0xFFFFFFFF


def _block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def _interface(name: str) -> bytes:
    # Ethernet, no limit; times in nanoseconds (if_tsresol, option 9).
    return _block(1, struct.pack("<HHI", 1, 0, 0) + _option(2, name.encode()) + _option(9, b"\x09") + _option(0, b""))


def _checksum(header: bytes) -> int:
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def _frame(event: dict[str, Any], mss: int, overhead: int) -> tuple[bytes, int]:
    """Headers of a packet, and its length with the payload that is not in the file."""
    kind = event["kind"]
    forward = kind in ("syn", "data")
    source, target = (0, 1) if forward else (1, 0)
    payload = max(0, event["bytes"] - overhead - 40) if kind == "data" else 0
    flags = {"syn": SYN, "syn-ack": SYN | ACK, "data": ACK, "ack": ACK}[kind]
    flags |= (ECE if event["ece"] else 0) | (CWR if event["cwr"] else 0)
    start = 1 + event["segment"] * mss
    numbers = {"syn": (0, 0), "syn-ack": (0, 1), "data": (start, 1), "ack": (1, start)}[kind]
    tcp = struct.pack(">HHIIBBHHH", PORTS[source], PORTS[target], numbers[0] & MASK, numbers[1] & MASK, 5 << 4, flags, 0xFFFF, 0, 0)
    ecn = 3 if event["ce"] else 2 if event["ect"] else 0
    ip = struct.pack(">BBHHHBBH", 0x45, ecn, min(0xFFFF, 40 + payload), 0, 0x4000, 64, 6, 0) + ADDRESSES[source] + ADDRESSES[target]
    ip = ip[:10] + struct.pack(">H", _checksum(ip)) + ip[12:]
    return HOSTS[target] + HOSTS[source] + b"\x08\x00" + ip + tcp, 54 + payload


def pcapng(events: list[dict[str, Any]], mss: int, overhead: int) -> bytes:
    """What the two hosts saw of the connection; packets that queues dropped were sent and never received."""
    out = [_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)), _interface("client"), _interface("server")]
    for event in events:
        if event["event"] not in ("sent", "received"):
            continue
        forward = event["kind"] in ("syn", "data")
        interface = 0 if forward == (event["event"] == "sent") else 1
        frame, length = _frame(event, mss, overhead)
        at = event["at_ps"] // 1000
        out.append(_block(6, struct.pack("<IIIII", interface, at >> 32, at & MASK, len(frame), length) + frame))
    return b"".join(out)
