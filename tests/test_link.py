"""`joulepath link`: theory, traces, and what it refuses."""

import json
import struct

import pytest

import joulepath

KEYS = {
    "energy_ratio", "lpi_ratio", "wait_s_mean", "wait_s_p50", "wait_s_p99", "sleeps_per_s", "frames_per_burst_mean", "time_s", "energy_j",
    "evidence",
}  # fmt: skip
CASES = [(phy, policy) for phy in ("100BASE-TX", "1000BASE-T", "10GBASE-T") for policy in ("eee", "coalesce:12us/10", "coalesce:120us/100")]


@pytest.mark.parametrize(("phy", "policy"), CASES)
def test_simulation_is_within_half_a_percent_of_theory(phy, policy):
    flags = {"phy": phy, "policy": policy, "load": 0.2, "overhead": "0 B", "frames": 2_000_000}
    run, exact = joulepath.link(**flags, seed=2), joulepath.link(**flags, method="analytic")
    assert run["energy_ratio"] == pytest.approx(exact["energy_ratio"], rel=0.005)
    assert run["wait_s_mean"] == pytest.approx(exact["wait_s_mean"], rel=0.005)
    assert run["lpi_ratio"] == pytest.approx(exact["lpi_ratio"], rel=0.005, abs=2e-4)
    assert run["sleeps_per_s"] == pytest.approx(exact["sleeps_per_s"], rel=0.005)


def test_long_timers_agree_with_theory():
    for load in (0.02, 0.3):
        flags = {"phy": "1000BASE-T", "policy": "1ms1000", "load": load, "overhead": "0 B", "frames": 2_000_000}
        run, exact = joulepath.link(**flags), joulepath.link(**flags, method="analytic")
        assert run["energy_ratio"] == pytest.approx(exact["energy_ratio"], rel=0.005)
        assert run["wait_s_mean"] == pytest.approx(exact["wait_s_mean"], rel=0.005)


def test_json_has_the_promised_keys(cli):
    for method in ("simulate", "analytic"):
        out = cli.json("link", "--frames", 1000, "--method", method)
        assert out.keys() >= KEYS
        assert set(out["time_s"]) == {"active", "sleeping", "lpi", "waking"}
        assert sum(out["time_s"].values()) == pytest.approx(out["duration_s"], rel=1e-12)
    assert out["wait_s_p99"] is None, "what has no closed form is n/a, never 0"


def test_a_text_trace_departs_as_computed_by_hand(cli, tmp_path):
    # 10 Gb/s: 1250 B take 1 us. Wake 4.48 us from the initial low-power idle; the second frame joins the burst; the third
    # comes 1 us after the queue emptied, inside the 2.88 us of T_s, which is not aborted.
    (tmp_path / "t.txt").write_text("0 1250\n0.000001 1250\n0.00000748 1250\n")
    cli("link", "--phy", "10GBASE-T", "--trace", "t.txt", "--overhead", "0 B", "--departures", "out.txt")
    rows = [line.split() for line in (tmp_path / "out.txt").read_text().splitlines()]
    assert rows == [
        ["0.000000000000", "1250", "0.000005480000"],
        ["0.000001000000", "1250", "0.000006480000"],
        ["0.000007480000", "1250", f"0.{6_480_000 + 2_880_000 + 4_480_000 + 1_000_000:012}"],
    ]


def test_text_times_count_from_zero_where_the_link_sleeps(cli, tmp_path):
    (tmp_path / "t.txt").write_text("0.001 1250\n")
    out = cli.json("link", "--phy", "10GBASE-T", "--trace", "t.txt", "--overhead", "0 B", "--departures", "out.txt")
    assert (tmp_path / "out.txt").read_text() == "0.001000000000 1250 0.001005480000\n"
    assert out["time_s"] == pytest.approx({"active": 1e-6, "sleeping": 0, "lpi": 1e-3, "waking": 4.48e-6})
    assert out["duration_s"] == pytest.approx(0.00100548)


def pcapng(frames, tsresol):
    def block(kind, body):
        body += b"\0" * (-len(body) % 4)
        length = len(body) + 12
        return struct.pack("<II", kind, length) + body + struct.pack("<I", length)

    out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    out += block(1, struct.pack("<HHI", 1, 0, 96) + struct.pack("<HHB3x", 9, 1, tsresol) + struct.pack("<HH", 0, 0))
    for ticks, length in frames:
        out += block(6, struct.pack("<IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, 4, length) + b"abcd")
    return out


@pytest.mark.parametrize(("tsresol", "tick_ps"), [(9, 1000), (6, 1_000_000), (0x80 | 20, None)])
def test_pcapng_times_are_exact(cli, tmp_path, tsresol, tick_ps):
    (tmp_path / "t.pcapng").write_bytes(pcapng([(1 << 33, 1000), ((1 << 33) + 3, 60)], tsresol))
    cli("link", "--phy", "10GBASE-T", "--policy", "legacy", "--trace", "t.pcapng", "--departures", "out.txt")
    second = (tmp_path / "out.txt").read_text().splitlines()[1].split()
    gap = 3 * tick_ps if tick_ps else (2**33 + 3) * 10**12 // 2**20 - 2**33 * 10**12 // 2**20
    assert second[:2] == [f"{gap // 10**12}.{gap % 10**12:012}", "60"]


def test_a_real_capture(cli, data):
    out = cli.json("link", "--trace", data / "own_veth_bulk4_1g.pcap", "--policy", "eee")
    assert out["frames"] == 10285
    assert out["overhead_bytes"] == 24, "an Ethernet capture has its header; frame check, preamble and gap are added"


BAD = [
    (("--load", "1.2"), "--load: found 1.2; expected a share of line rate above 0 and at most 1"),
    (("--load", "1", "--method", "analytic"), "needs a load above 0 and below 1"),
    (("--load", "nan"), "--load: found nan"),
    (("--policy", "coalesce:12us"), "TIMER/TRIGGER is missing"),
    (("--policy", "sleepy"), "there is no such policy"),
    (("--frame", "1500"), 'found "1500" without a unit; write it with one, for example "64 KiB"'),
    (("--frames", "0"), "--frames: found 0"),
    (("--lpi-power", "2"), "--lpi-power: found 2"),
    (("--phy", "1G"), "100BASE-TX"),
    (("--policy", "coalesce:12us/15KB", "--method", "analytic"), "no closed form"),
    (("--arrivals", "pareto", "--method", "analytic"), "expected Poisson arrivals"),
]


@pytest.mark.parametrize(("flags", "sentence"), BAD)
def test_impossible_values_get_one_sentence(cli, flags, sentence):
    assert sentence in cli.refusal("link", *flags)


def test_a_capture_cut_in_the_middle(cli, tmp_path, data):
    whole = (data / "own_veth_bulk4_1g.pcap").read_bytes()
    (tmp_path / "cut.pcap").write_bytes(whole[: len(whole) // 2])
    message = cli.refusal("link", "--trace", "cut.pcap", code=1)
    assert "ends in the middle of a record after" in message and "copy it again" in message
    assert cli.refusal("link", "--trace", "none.pcap", code=1).startswith("joulepath: none.pcap: No such file")


def test_departures_are_whole_or_absent(cli, tmp_path):
    cli.refusal("link", "--departures", "no/such/folder/out.txt", code=1)
    assert list(tmp_path.iterdir()) == []


def test_same_seed_same_bytes():
    first, second = (json.dumps(joulepath.link(frames=5000, arrivals="pareto", seed=9)) for _ in range(2))
    assert first == second
    assert first != json.dumps(joulepath.link(frames=5000, arrivals="pareto", seed=10))
