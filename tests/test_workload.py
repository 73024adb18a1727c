"""`joulepath workload inspect`: what is understood of real logs, whole and damaged."""

import gzip
import io
import json
import random
import struct

import lz4.block
import lz4.frame
import pytest
import zstandard

import joulepath

Q72 = "data/spark/nds_q72_dataproc_2_2.zstd"


def test_the_public_q72_log(cli, root):
    found = cli.json("workload", "inspect", root / Q72)
    expected = {
        "kind": "spark", "compression": "zstd", "jobs": 49, "jobs_failed": 0, "tasks": 13504, "hosts": 4, "executors": 8,
        "shuffle_read_remote_bytes": 15_443_132_612, "shuffle_read_local_bytes": 5_150_085_499, "shuffle_write_bytes": 20_593_218_111,
        "warnings": [],
    }  # fmt: skip
    assert {k: found[k] for k in expected} == expected
    assert found["matrix"]["inferred"] and "proportional fitting" in found["matrix"]["basis"]
    total = sum(map(sum, found["matrix"]["bytes"]))
    assert total == pytest.approx(20_593_218_111, abs=100)
    diagonal = sum(row[i] for i, row in enumerate(found["matrix"]["bytes"]))
    assert diagonal == 5_150_085_499


LOGS = [
    ("FB-2009_samples_24_times_1hr_0.tsv", {"kind": "swim", "jobs": 5894, "tasks": None, "hosts": None, "shuffle_read_remote_bytes": None}),
    ("job_2.4.0-FAILED.jhist", {"kind": "jhist", "jobs": 1, "jobs_failed": 1, "tasks": 4, "hosts": 1}),
    ("sort_120MB_6maps_4reduces_avro_binary.jhist", {"kind": "jhist", "jobs_failed": 0, "hosts": 2, "shuffle_write_bytes": 129_600_144}),
    ("eventlog_minimal_events", {"kind": "spark", "jobs": 6, "tasks": 10, "shuffle_write_bytes": 802}),
    ("local-1425081759269", {"kind": "spark", "jobs": 4, "tasks": 33, "shuffle_write_bytes": 13180}),
    ("eventlog_4nodes_8cores_dynamic_alloc.zstd", {"tasks": 235, "executors": 10, "shuffle_write_bytes": 504_289_880}),
]


@pytest.mark.parametrize(("name", "expected"), LOGS)
def test_logs_of_every_kind(data, name, expected):
    found = joulepath.inspect_workload(data / name)
    assert {k: found[k] for k in expected} == expected


def test_swim_sums_agree_with_a_plain_reading(data):
    rows = [line.split("\t") for line in (data / "FB-2009_samples_24_times_1hr_0.tsv").read_text().splitlines()]
    found = joulepath.inspect_workload(data / "FB-2009_samples_24_times_1hr_0.tsv")
    sums = [sum(int(r[i]) for r in rows) for i in (3, 4, 5)]
    assert [found["input_bytes"], found["shuffle_write_bytes"], found["output_bytes"]] == sums


def lz4_java(data: bytes, block: int = 1 << 16) -> bytes:
    """The block format of lz4-java, which Spark writes."""
    out = b""
    for at in range(0, len(data), block):
        part = data[at : at + block]
        packed = lz4.block.compress(part, store_size=False)
        out += b"LZ4Block" + bytes([0x26]) + struct.pack("<III", len(packed), len(part), 0) + packed
    return out + b"LZ4Block" + bytes([0x16]) + struct.pack("<III", 0, 0, 0)


def zstd_frames(data: bytes) -> bytes:
    """Two frames, as a restarted Spark writes them."""
    half = len(data) // 2
    return zstandard.compress(data[:half]) + zstandard.compress(data[half:])


@pytest.mark.parametrize(
    ("name", "pack"), [("gzip", gzip.compress), ("zstd", zstd_frames), ("lz4", lz4.frame.compress), ("lz4", lz4_java)], ids=str
)
def test_every_compression_is_found_by_content(tmp_path, data, name, pack):
    plain = (data / "eventlog_minimal_events").read_bytes()
    (tmp_path / "log").write_bytes(pack(plain))
    found, expected = joulepath.inspect_workload(tmp_path / "log"), joulepath.inspect_workload(data / "eventlog_minimal_events")
    assert found.pop("compression") == name
    expected.pop("compression")
    assert found == expected


def test_a_truncated_zstd_log(cli, tmp_path, root):
    whole = (root / Q72).read_bytes()
    (tmp_path / "cut.zstd").write_bytes(whole[: len(whole) // 2])
    message = cli.refusal("workload", "inspect", "cut.zstd", code=1)
    assert message.startswith("joulepath: cut.zstd: cannot be read beyond line ") and "copy it again" in message


def test_damage_is_named_by_line(tmp_path, data):
    lines = (data / "eventlog_minimal_events").read_text().splitlines()
    lines[4] = '{"Event":"SparkListenerTaskEnd", broken'
    (tmp_path / "log").write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:30])
    warnings = joulepath.inspect_workload(tmp_path / "log")["warnings"]
    assert warnings[0]["line"] == 5
    assert any("without the end" in w["what"] or "ends without" in w["what"] for w in warnings)


def test_an_empty_version_and_a_killed_task_are_warnings(tmp_path):
    task = {
        "Event": "SparkListenerTaskEnd", "Stage ID": 0, "Task End Reason": {"Reason": "TaskKilled"},
        "Task Info": {"Executor ID": "1", "Host": "a"}, "Task Metrics": {"Shuffle Write Metrics": {"Shuffle Bytes Written": 5}},
    }  # fmt: skip
    events = [{"Event": "SparkListenerLogStart", "Spark Version": ""}, {"Event": "SparkListenerJobStart"}, task]
    (tmp_path / "log").write_text("\n".join(map(json.dumps, events)))
    found = joulepath.inspect_workload(tmp_path / "log")
    assert (found["tasks"], found["shuffle_write_bytes"]) == (1, 0)
    assert [w["line"] for w in found["warnings"]][:1] == [1] and len(found["warnings"]) >= 3


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\0\1\2\3" * 100, b"{}\n{}\n", b"Avro-Binary\n", b"Avro-Json\nx\ny\n"])
def test_other_files_are_refused_in_one_sentence(cli, tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    message = cli.refusal("workload", "inspect", "file", code=1)
    assert message.count("\n") == 0 and "found" in message and "expected" in message


def test_a_cut_binary_history_keeps_what_was_read(tmp_path, data):
    whole = (data / "sort_120MB_6maps_4reduces_avro_binary.jhist").read_bytes()
    (tmp_path / "cut.jhist").write_bytes(whole[: int(len(whole) * 0.7)])
    found = joulepath.inspect_workload(tmp_path / "cut.jhist")
    assert 0 < found["shuffle_write_bytes"] <= 129_600_144
    assert any("the file is cut" in w["what"] for w in found["warnings"])


@pytest.mark.parametrize("name", ["eventlog_minimal_events", "aqeshuffle_eventlog.zstd", "sort_120MB_6maps_4reduces_avro_binary.jhist",
                                  "job_2.4.0-FAILED.jhist", "FB-2009_samples_24_times_1hr_0.tsv"])  # fmt: skip
def test_mutated_logs_never_crash(tmp_path, data, name):
    """Fuzz: flipped bits, cuts, repeats and insertions give a result or one sentence."""
    source, rng = (data / name).read_bytes()[:60_000], random.Random(name)
    for _ in range(150):
        mutated = bytearray(source)
        for _ in range(rng.randint(1, 8)):
            at = rng.randrange(len(mutated))
            match rng.randrange(4):
                case 0:
                    mutated[at] ^= 1 << rng.randrange(8)
                case 1:
                    del mutated[at : at + rng.randrange(1, 2000)]
                case 2:
                    mutated[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 20)))
                case 3:
                    mutated[at:at] = mutated[at : at + rng.randrange(1, 500)]
            if not mutated:
                mutated = bytearray(b"x")
        (tmp_path / "log").write_bytes(mutated)
        try:
            found = joulepath.inspect_workload(tmp_path / "log")
            assert isinstance(found["jobs"], int)
        except joulepath.TraceFileError as error:
            assert "\n" not in str(error)


def test_mutated_captures_never_crash(tmp_path, data):
    source, rng = (data / "own_veth_bulk4_1g.pcap").read_bytes()[:20_000], random.Random(5)
    for _ in range(200):
        mutated = bytearray(source)
        for _ in range(rng.randint(1, 6)):
            mutated[rng.randrange(len(mutated))] = rng.randrange(256)
        (tmp_path / "t.pcap").write_bytes(mutated[: rng.randrange(1, len(mutated))])
        try:
            joulepath.link(trace=tmp_path / "t.pcap")
        except joulepath.TraceFileError as error:
            assert "\n" not in str(error)


def test_a_large_log_is_streamed(tmp_path, root):
    """A gigabyte of log, most of it events that do not matter, in a fraction of that memory."""
    import resource
    import subprocess
    import sys

    big = io.BytesIO()
    with gzip.GzipFile(fileobj=big, mode="wb", compresslevel=1) as out:
        filler = json.dumps({"Event": "SparkListenerExecutorMetricsUpdate", "x": "y" * 1_000_000}).encode() + b"\n"
        for _ in range(400):
            out.write(filler)
        out.write(zstandard.ZstdDecompressor().stream_reader(io.BytesIO((root / Q72).read_bytes()), read_across_frames=True).read())
    (tmp_path / "log.gz").write_bytes(big.getvalue())
    code = "import joulepath, resource, sys; f = joulepath.inspect_workload(sys.argv[1]); assert f['tasks'] == 13504"
    limit = 1 << 20

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit << 9, limit << 9))  # 512 MiB, half of it Python and Arrow

    run = subprocess.run([sys.executable, "-c", code, tmp_path / "log.gz"], preexec_fn=small, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
