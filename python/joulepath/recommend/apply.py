"""From settings of a plan to commands: for Linux, SONiC, Juniper, Arista and Cisco, each with the way back and a check.

Only what differs from the baseline is printed. What no standard knob can set is said in words. Names in capitals (PORT, NIC,
ROUTE) are for the reader to fill in.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from joulepath._core import bytes_of, picoseconds_of
from joulepath.plan import Run

ACCESS, FABRIC = "ports toward hosts", "ports between switches"
HADOOP = {
    "parallel_copies": ("mapred-site.xml", "mapreduce.reduce.shuffle.parallelcopies"),
    "slowstart": ("mapred-site.xml", "mapreduce.job.reduce.slowstart.completedmaps"),
    "replication": ("hdfs-site.xml", "dfs.replication"),
    "output_replication": ("mapred-site.xml", "mapreduce.terasort.output.replication"),
}


@dataclass(frozen=True)
class Snippet:
    """Commands for one system: to apply, to take back, to check."""

    system: str
    what: str
    apply: tuple[str, ...]
    undo: tuple[str, ...]
    check: tuple[str, ...]
    note: str = ""


@dataclass
class Applied:
    """How to set what was chosen."""

    snippets: list[Snippet] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """JSON with the names of the reference."""
        return {"apply": [asdict(s) for s in self.snippets], "not_settable": self.words}

    def as_text(self) -> str:
        """As it is printed."""
        lines = []
        for s in self.snippets:
            lines += [f"# {s.system}: {s.what}", *s.apply, "# the way back", *s.undo, "# check", *s.check]
            lines += [f"# {s.note}"] if s.note else []
            lines.append("")
        return "\n".join(lines + [f"# {w}" for w in self.words]) + "\n"


def applied(before: Run, after: Run) -> Applied:
    """What to change on real equipment to go from one plan to the other."""
    old, new = before.resolved, after.resolved
    out = Applied()
    out.snippets += _transport(old["tcp"], new["tcp"])
    for where, class_ in ((ACCESS, "edge"), (FABRIC, "uplink")):
        was, now = _queue(before, class_), _queue(after, class_)
        if was != now and now is not None:
            snippets, words = _discipline(now, where, _uses_ecn(new["tcp"]))
            out.snippets += snippets
            out.words += words
    snippets, words = _eee(old["eee"], new["eee"])
    out.snippets += snippets
    out.words += words
    out.snippets += _hadoop(old["hadoop"], new["hadoop"])
    out.snippets = _merged(out.snippets)
    told = {"tcp", "ports.queue", "ports.edge_queue", "ports.fabric_queue", "eee", "hadoop"}
    for key in _changed(old, new):
        if not any(key == t or key.startswith(t + ".") for t in told):
            out.words.append(
                f"{key} = {_at(new, key)!r}: a property of the equipment or of the workload, not a setting with a standard command."
            )
    for key in old["hadoop"]:
        if key not in HADOOP and old["hadoop"][key] != new["hadoop"][key]:
            out.words.append(
                f"hadoop.{key} = {new['hadoop'][key]!r}: set it where your distribution keeps it (slots: YARN container sizes; scheduler: yarn-site.xml)."
            )
    return out


def _merged(snippets: list[Snippet]) -> list[Snippet]:
    """Where the same commands serve two kinds of ports, once with both names."""
    merged: dict[Any, list[Snippet]] = {}
    for s in snippets:
        merged.setdefault((s.system, s.apply, s.undo, s.check, s.note), []).append(s)
    return [
        replace(group[0], what=" and ".join([group[0].what, *(s.what.split(" at ")[-1] for s in group[1:])])) for group in merged.values()
    ]


def _uses_ecn(tcp: dict[str, Any]) -> bool:
    return tcp["variant"] == "dctcp" if tcp["ecn"] is None else tcp["ecn"]


def _changed(old: Any, new: Any, prefix: str = "") -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            yield from _changed(old.get(key), new.get(key), f"{prefix}{key}.")
    elif old != new:
        yield prefix.rstrip(".")


def _at(plan: Any, key: str) -> Any:
    for part in key.split("."):
        plan = plan[part] if isinstance(plan, dict) else plan
    return plan


def _queue(run: Run, class_: str) -> dict[str, Any] | None:
    """The discipline of a class of ports, in bytes and seconds, as equipment wants it."""
    settings = {q["class"]: q for q in run.queues}
    if class_ not in settings:
        return None
    queue, plan = settings[class_], run.resolved
    ports, frame = plan["ports"], queue["frame_bytes"]
    spec = ports["edge_queue" if class_ == "edge" else "fabric_queue"] or ports["queue"]
    size = 1 if queue["unit"] == "bytes" else frame
    limit = ports["buffer"]
    in_packets = limit.endswith("packets")
    return {
        **spec,
        "min_bytes": round(queue["min"] * size) if queue["min"] else None,
        "max_bytes": round(queue["max"] * size) if queue["max"] else None,
        "in_packets": in_packets,
        "limit_packets": int(limit.split()[0]) if in_packets else max(1, bytes_of(limit) // frame),
        "limit_bytes": int(limit.split()[0]) * frame if in_packets else bytes_of(limit),
        "frame_bytes": frame,
        "rate_bps": queue["rate_bps"],
    }


def _tc_time(text: str) -> str:
    return text.replace(" ", "")


def _transport(old: dict[str, Any], new: dict[str, Any]) -> Iterator[Snippet]:
    ecn = _uses_ecn(new)
    if (_uses_ecn(old), old["variant"]) != (ecn, new["variant"]):
        name = {"newreno": "reno", "cubic": "cubic", "dctcp": "dctcp"}
        module = ["modprobe tcp_dctcp"] if new["variant"] == "dctcp" else []
        control = f"net.ipv4.tcp_congestion_control={name[new['variant']]} " if old["variant"] != new["variant"] else ""
        yield Snippet(
            "Linux hosts",
            f"{name[new['variant']] + ', ' if control else ''}ECN {'on' if ecn else 'off'}",
            (
                "sysctl net.ipv4.tcp_congestion_control net.ipv4.tcp_ecn > tcp-before.txt",
                *module,
                f"sysctl -w {control}net.ipv4.tcp_ecn={1 if ecn else 2}",
            ),
            ("sysctl -p tcp-before.txt",),
            (
                "sysctl net.ipv4.tcp_congestion_control net.ipv4.tcp_ecn",
                "ss -tin | grep -o 'reno\\|cubic\\|dctcp\\|ecn\\b' | sort | uniq -c",
                "nstat -az TcpExtTCPDeliveredCE",
            ),
            "Only new connections change. On every host: a host that does not negotiate ECN is dropped where others are marked. To keep it, write both lines to /etc/sysctl.d/90-tcp.conf."
            + (" DCTCP must not share queues with loss-based TCP." if new["variant"] == "dctcp" else ""),
        )
    if old["receive_window"] != new["receive_window"]:
        size = 64 * 2**20 if new["receive_window"] == "unlimited" else bytes_of(new["receive_window"])
        yield Snippet(
            "Linux hosts",
            f"receive window {new['receive_window']}",
            ("sysctl net.ipv4.tcp_rmem > rmem-before.txt", f"sysctl -w net.ipv4.tcp_rmem='4096 131072 {2 * size}'"),
            ("sysctl -p rmem-before.txt",),
            ("sysctl net.ipv4.tcp_rmem", "ss -tinm | grep -o 'rcv_space:[0-9]*'"),
            "The kernel offers about half of the third number as window (net.ipv4.tcp_adv_win_scale).",
        )
    routes = {"initial_window": "initcwnd", "min_rto": "rto_min"}
    changes = [(routes[k], str(new[k]).replace(" ", "")) for k in routes if old[k] != new[k]]
    if changes:
        words = " ".join(f"{k} {v}" for k, v in changes)
        yield Snippet(
            "Linux hosts",
            words,
            ("ip route show > routes-before.txt", f"ip route change ROUTE {words}"),
            (f"ip route change ROUTE {' '.join(k + ' 0' for k, _ in changes)}",),
            ("ip route show | grep -E 'initcwnd|rto_min'",),
            "ROUTE is the route to the cluster as `ip route show` prints it.",
        )


def _discipline(queue: dict[str, Any], where: str, ecn: bool) -> tuple[list[Snippet], list[str]]:
    kind, words, snippets = queue["kind"], [], []
    limit, packets, frame = queue["limit_bytes"], queue["limit_packets"], queue["frame_bytes"]
    undo, check = ("tc qdisc del dev PORT root",), ("tc -s qdisc show dev PORT",)
    if kind == "droptail":
        size = f"pfifo limit {packets}" if queue["in_packets"] else f"bfifo limit {limit}"
        snippets.append(Snippet("Linux switch", f"DropTail at {where}", (f"tc qdisc replace dev PORT root {size}",), undo, check))
        snippets += _vendors_off(where)
        return snippets, words
    if kind == "codel":
        line = (
            f"codel limit {packets} target {_tc_time(queue['target'])} interval {_tc_time(queue['interval'])} {'ecn' if ecn else 'noecn'}"
        )
        snippets.append(Snippet("Linux switch", f"CoDel at {where}", (f"tc qdisc replace dev PORT root {line}",), undo, check))
        words.append(f"CoDel at {where}: no knob on SONiC, Juniper, Arista or Cisco data-centre switches; WRED with ECN is their nearest.")
        if queue["protect"] != "ect":
            words.append(
                f"protect = {queue['protect']!r} with CoDel: Linux' codel drops what it cannot mark; no standard knob spares acknowledgements."
            )
        return snippets, words
    low, high = queue["min_bytes"], queue["max_bytes"]
    rate = queue["rate_bps"]
    probability = 1.0 if kind == "mark" else queue["max_probability"]
    if kind == "mark":
        # CoDel's ce_threshold marks what has waited longer than this, at once, and never drops with an endless target.
        delay = round(low * 8e6 / rate)
        line = f"codel limit {packets} target 10s interval 10s ecn ce_threshold {delay}us"
        note = f"{delay} us is what {low} B take at {rate / 1e9:g} Gb/s. Nothing is dropped before the limit."
        snippets.append(Snippet("Linux switch", f"true marking at {where}", (f"tc qdisc replace dev PORT root {line}",), undo, check, note))
    else:
        top = max(high, low + frame)
        burst = max(1, round((2 * low + top) / (3 * frame)))
        flags = (" ecn" if ecn else "") + (" nodrop" if ecn and queue["protect"] == "all" else "")
        line = f"red limit {limit} min {low} max {top} avpkt {frame} burst {burst} probability {probability:g} bandwidth {rate // 10**6}mbit{flags}"
        note = "In bytes. Linux averages the queue (burst sets how slowly); the simulation judged the queue of the moment, so expect marks a little later."
        snippets.append(Snippet("Linux switch", f"RED at {where}", (f"tc qdisc replace dev PORT root {line}",), undo, check, note))
        if queue["protect"] in ("ece", "ack+syn"):
            words.append(
                f"protect = {queue['protect']!r} at {where}: no standard knob spares acknowledgements alone; the nearest is `nodrop` of Linux' red, or a switch that lets non-ECT packets pass."
            )
        elif queue["protect"] == "all":
            words.append(
                f"protect = 'all' at {where}: `nodrop` on Linux; Juniper queues with ECN tail-drop what is not ECN-capable; on the others ask the vendor."
            )
    percent = max(1, round(100 * probability))
    high = max(high, low + 1)
    if not ecn:
        words.append(f"RED without ECN at {where}: on the switches below leave out the word ecn, it then drops.")
    kb = lambda n: max(1, round(n / 1000))  # noqa: E731
    fill = lambda n: min(100, max(1, round(100 * n / limit)))  # noqa: E731
    snippets += [
        Snippet(
            "SONiC",
            f"WRED with ECN at {where}",
            ("ecnconfig -l > ecn-before.txt", f"ecnconfig -p AZURE_LOSSLESS -gmin {low} -gmax {high} -gdrop {percent}", "ecnconfig -q 3 on"),
            ("ecnconfig -p AZURE_LOSSLESS -gmin MIN -gmax MAX -gdrop PERCENT   # as in ecn-before.txt", "ecnconfig -q 3 off"),
            ("ecnconfig -l", "ecnconfig -q 3", "show queue watermark unicast"),
            "Thresholds are per profile; give ports between switches a profile of their own. Queue 3 is an example.",
        ),
        Snippet(
            "Juniper",
            f"drop profile with ECN at {where}",
            (
                f"set class-of-service drop-profiles JOULES interpolate fill-level [ {fill(low)} {fill(high)} ] drop-probability [ 0 {percent} ]",
                "set class-of-service schedulers SCHEDULER drop-profile-map loss-priority any protocol any drop-profile JOULES",
                "set class-of-service schedulers SCHEDULER explicit-congestion-notification",
                "commit confirmed 5",
            ),
            (
                "delete class-of-service schedulers SCHEDULER explicit-congestion-notification",
                "delete class-of-service schedulers SCHEDULER drop-profile-map loss-priority any protocol any",
                "delete class-of-service drop-profiles JOULES",
                "commit",
            ),
            ("show class-of-service drop-profile JOULES", "show interfaces queue PORT"),
            f"Fill levels are per cent of the queue's buffer, here of {limit} B. Queues with ECN tail-drop packets that are not ECN-capable.",
        ),
        Snippet(
            "Arista",
            f"ECN at {where}",
            (
                "interface PORT",
                "  tx-queue 3",
                f"    random-detect ecn minimum-threshold {kb(low)} kbytes maximum-threshold {kb(high)} kbytes max-mark-probability {percent}",
            ),
            ("interface PORT", "  tx-queue 3", "    no random-detect ecn"),
            ("show qos interfaces PORT ecn", "show interfaces PORT counters queue"),
        ),
        Snippet(
            "Cisco NX-OS",
            f"WRED with ECN at {where}",
            (
                "policy-map type queuing JOULES",
                "  class type queuing c-out-8q-q-default",
                f"    random-detect minimum-threshold {kb(low)} kbytes maximum-threshold {kb(high)} kbytes drop-probability {percent} weight 0 ecn",
                "interface PORT",
                "  service-policy type queuing output JOULES",
            ),
            ("interface PORT", "  no service-policy type queuing output JOULES", "no policy-map type queuing JOULES"),
            ("show queuing interface PORT", "show policy-map interface PORT type queuing"),
            "weight 0 judges the queue of the moment.",
        ),
    ]  # fmt: skip
    return snippets, words


def _vendors_off(where: str) -> list[Snippet]:
    return [
        Snippet("SONiC", f"no WRED at {where}", ("ecnconfig -q 3 off",), ("ecnconfig -q 3 on",), ("ecnconfig -q 3",)),
        Snippet("Arista", f"no ECN at {where}", ("interface PORT", "  tx-queue 3", "    no random-detect ecn"), ("configure replace startup-config",), ("show qos interfaces PORT ecn",)),
        Snippet("Cisco NX-OS", f"no WRED at {where}", ("interface PORT", "  no service-policy type queuing output POLICY"), ("interface PORT", "  service-policy type queuing output POLICY"), ("show queuing interface PORT",)),
    ]  # fmt: skip


def _eee(old: dict[str, Any], new: dict[str, Any]) -> tuple[list[Snippet], list[str]]:
    snippets, words = [], []
    for where, classes, group in (("links of hosts", ("nic", "edge"), "access"), ("links between switches", ("uplink", "core"), "fabric")):
        policy = lambda plan: tuple(plan[c] or plan[group] or plan["policy"] for c in classes)  # noqa: B023, E731
        if policy(old) == policy(new):
            continue
        for was, chosen in dict.fromkeys(zip(policy(old), policy(new), strict=True)):
            # Coalescing is Energy Efficient Ethernet too: its knob moves only when that goes on or off, or its stall timer changes.
            if (was == "legacy") != (chosen == "legacy") or _stall(was) != _stall(chosen):
                snippets += _eee_snippets(chosen, where)
            if chosen.startswith("coalesce"):
                words.append(
                    f"{chosen} on {where}: no standard knob sets packet coalescing; ethtool's tx-timer is the time before a port goes to sleep, not a holding time."
                    " Some physical layers hold packets on their own (Broadcom's AutoGrEEEn); ask the vendor for its timer and its number of packets."
                )
            elif chosen == "ideal":
                words.append(f"ideal on {where}: a bound, not a setting; standard Energy Efficient Ethernet is what equipment has.")
    return snippets, words


def _stall(policy: str) -> str:
    return policy.partition(":")[2] if policy.startswith("eee:") else ""


def _eee_snippets(policy: str, where: str) -> list[Snippet]:
    off = policy == "legacy"
    stall = _stall(policy)
    timer = f" tx-timer {round(picoseconds_of(stall) / 1e6)}" if stall else ""
    linux = "ethtool --set-eee NIC eee off" if off else f"ethtool --set-eee NIC eee on tx-lpi on{timer}"
    back = "ethtool --set-eee NIC eee on tx-lpi on" if off else "ethtool --set-eee NIC eee off"
    what = f"Energy Efficient Ethernet {'off' if off else 'on'}, {where}"
    cisco, juniper = "power efficient-ethernet auto", "interfaces PORT ether-options ieee-802-3az-eee"
    return [
        Snippet("Linux hosts and switches", what, (linux,), (back,), ("ethtool --show-eee NIC",), "Both ends of a link must advertise it."),
        Snippet("Cisco IOS", what, ("interface PORT", f"  {'no ' if off else ''}{cisco}"), ("interface PORT", f"  {'' if off else 'no '}{cisco}"), ("show eee status interface PORT",)),
        Snippet("Juniper", what, (f"{'delete' if off else 'set'} {juniper}", "commit"), (f"{'set' if off else 'delete'} {juniper}", "commit"), ("show interfaces PORT extensive | match eee",)),
    ]  # fmt: skip


def _hadoop(old: dict[str, Any], new: dict[str, Any]) -> Iterator[Snippet]:
    for key, (file, name) in HADOOP.items():
        if old[key] != new[key]:
            prop = lambda v: f"<property><name>{name}</name><value>{v:g}</value></property>"  # noqa: B023, E731
            yield Snippet(
                "Hadoop",
                f"{name} in {file}",
                (prop(new[key]),),
                (prop(old[key]),),
                ("hdfs getconf -confKey " + name,),
                "Jobs that start later use it.",
            )
