"""Plans: what is refused and how, and how grids expand."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import joulepath
from joulepath.plan import PlanFileError, load_plan

IDLE = '[workload]\nkind = "idle"\nduration = "1 ms"\n'

BAD = [
    ('[topology]\nkind = "leaf-spine"\nracks = 0\n' + IDLE, "topology.racks: found 0; expected 1 to 1000 racks"),
    ('[tcp]\nreceive_window = "64 parsec"\n' + IDLE, "tcp.receive_window: found \"64 parsec\", whose unit is not known here; use one of B, KB"),
    ("[tcp]\nmin_rto = 200\n" + IDLE, 'tcp.min_rto: found "200" without a unit; write it with one, for example "120 us"'),
    ('[tcp]\nreceive_windw = "64 KB"\n' + IDLE, "tcp.receive_windw: found an unknown key"),
    ('[tcp]\nreceive_windw = "64 KB"\n' + IDLE, 'did you mean "receive_window"?'),
    ('[tcp]\nvariant = "reno"\n' + IDLE, 'tcp.variant: found "reno"; expected one of newreno, cubic, dctcp; did you mean "newreno"?'),
    ('sed = 1\n' + IDLE, "did you mean 'seed'?"),
    ('[eee]\npolicy = "eee:50"\n' + IDLE, "eee.policy: in the policy \"eee:50\""),
    ('[eee]\nlpi_power = 1.5\n' + IDLE, "eee.lpi_power: found 1.5; expected a share of full power from 0 to 1"),
    ('[workload]\nkind = "mix"\njobs = 3\ncpu_load = 1.2\n', "workload.cpu_load: found 1.2; expected a share of all cores above 0 and below 1"),
    ('[workload]\nkind = "log"\nfile = "none.zstd"\n', "workload.file: found"),
    ('[workload]\nkind = "dance"\n', 'found "dance"; expected one of jobs, mix, log, shuffle, idle'),
    ("", "workload: found nothing; expected this key"),
    ('[topology]\nkind = "fat-tree"\nk = 5\n' + IDLE, "topology.k: found 5; expected an even number of ports"),
    ('[topology]\nkind = "leaf-spine"\nedge_rate = "40 Gb/s"\n' + IDLE, "eee.access_phy: no physical layer is known for links of 40 Gb/s"),
    ('[ports]\nbuffer = "0 packets"\n' + IDLE, "ports.buffer: found \"0 packets\"; expected a positive whole number of packets"),
    ('model = "cloud"\n' + IDLE, "model: found 'cloud'; expected one of cluster"),
    ("seed = -1\n" + IDLE, "seed: found -1; expected a whole number from 0"),
    ("x = \n", "not valid TOML"),
    (IDLE + '[grid]\neee.policy = []\n', "grid.eee.policy: found []; expected a list of at least one value"),
    (IDLE + '[grid]\neee.policy = ["eee", "ee"]\n', "(in the grid, run 'ee')"),
    (IDLE + '[grid]\neee.policy = ["eee", "eee"]\n', "two runs with the same label"),
    (IDLE + '[[zip]]\neee.policy = ["eee"]\nseed = [1, 2]\n', "lists of different lengths (eee.policy has 1, seed has 2)"),
    (IDLE + '[[figure]]\ntitle = "x"\ny = "runtime_s"\nkind = "pie"\n', "figure[0].kind: found 'pie'; expected one of bar, line, dot"),
    (IDLE + '[[figure]]\ntitle = "x"\nz = "runtime_s"\n', "figure[0].z: found an unknown key"),
    ('[topology]\nkind = "links"\nlinks = [{ a = "h", b = "h", rate = "1 Gb/s" }]\n' + IDLE, 'topology.links[0]: found a link from "h" to itself'),
    ('[eee]\nlpi = "both"\nnic = "eee"\n' + IDLE, 'found "both" with the policies eee and legacy at the two ends'),
    ('[topology]\nkind = "leaf-spine"\nnodes = 3000\n[workload]\nkind = "shuffle"\nbytes = "1 B"\n', "expected at most 5000000"),
    ('[hadoop]\nmasters = 80\n[workload]\nkind = "mix"\njobs = 1\ncpu_load = 0.1\n', "hadoop.masters: found 80 of 80 hosts"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), BAD)
def test_a_bad_plan_gets_one_sentence_and_exit_2(cli, tmp_path, text, sentence):
    (tmp_path / "plan.toml").write_text(text)
    message = cli.refusal("simulate", "plan.toml")
    assert message.startswith("joulepath: ") and sentence in message, message
    assert "\n" not in message
    assert not list(tmp_path.glob("records/*/runs/*")), "nothing is recorded"


def test_missing_files(cli, tmp_path):
    (tmp_path / "terasort.toml").write_text(IDLE)
    assert cli.refusal("simulate", "terasrt.toml").endswith("expected a TOML file; did you mean terasort.toml?")
    assert "found a directory" in cli.refusal("simulate", tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"title = '\xe9'")
    assert "not UTF-8" in cli.refusal("simulate", "latin.toml")
    assert "expected KEY=VALUE" in cli.refusal("simulate", "terasort.toml", "--set", "seed")


def test_the_grid_is_a_cross_product_of_lists_and_zips():
    plan = load_plan(
        {
            "workload": {"kind": "idle", "duration": "1 ms"},
            "repeat": 2,
            "grid": {"eee": {"policy": ["legacy", "eee"]}, "seed": [3, 4]},
            "zip": [{"label": {"size": ["small", "large"]}, "topology": {"nodes": [4, 8]}}],
            "topology": {"kind": "leaf-spine"},
        }
    )
    assert len(plan.runs) == 2 * 2 * 2 * 2
    assert plan.runs[0].label == "legacy · 3 · small · repetition 1"
    last = plan.runs[-1]
    assert (last.seed, last.repetition, last.resolved["topology"]["nodes"]) == (4, 1, 8)
    assert last.settings == {"eee.policy": "eee", "seed": "4", "size": "large", "repeat": "2"}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(2, 40), min_size=1, max_size=4, unique=True), st.integers(1, 3))
def test_every_combination_occurs_once(nodes, repeat):
    plan = load_plan(
        {
            "workload": {"kind": "idle", "duration": "1 ms"},
            "topology": {"kind": "leaf-spine"},
            "grid": {"topology.nodes": nodes},
            "repeat": repeat,
        }
    )
    assert len(plan.runs) == len({r.label for r in plan.runs}) == len(nodes) * repeat


def test_a_dictionary_is_not_changed():
    plan = {"workload": {"kind": "idle", "duration": "1 ms"}, "grid": {"eee.policy": ["eee"]}}
    before = copy.deepcopy(plan)
    load_plan(plan)
    assert plan == before
    with pytest.raises(PlanFileError):
        load_plan({"workload": {"kind": "idle"}})
    assert joulepath.PlanError.__mro__[1] is ValueError


def test_every_shipped_experiment_is_a_valid_plan(root):
    plans = sorted((root / "experiments").rglob("*.toml"))
    assert len(plans) >= 9
    for path in plans:
        plan = load_plan(path)
        assert plan.title and plan.source, path
