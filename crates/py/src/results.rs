//! Results as JSON: the names of metrics, with their units.

use joulepath_energy::{Account, Evidence};
use joulepath_mapreduce::{ClusterResult, Trace};
use joulepath_net::{Histogram, KindCount, QueueCount};
use joulepath_units::Energy;
use serde_json::{Map, Value, json};

pub(crate) fn log_summary(trace: &Trace) -> Value {
    let names = &trace.places;
    let matrix = trace.matrix().map(|m| {
        json!({
            "places": names,
            "bytes": m.bytes.iter().map(|r| r.iter().map(|b| b.round() as u64).collect::<Vec<_>>()).collect::<Vec<_>>(),
            "basis": if m.exact { "exact: two places and their local share determine it" } else { "inferred by proportional fitting from what each place wrote, read and read locally: the log has no bytes for each pair" },
            "inferred": !m.exact,
            "residual_ratio": m.residual,
        })
    });
    json!({
        "kind": trace.kind,
        "compression": trace.compression,
        "jobs": trace.job_count,
        "jobs_failed": trace.jobs_failed,
        "tasks": trace.tasks,
        "hosts": trace.hosts,
        "executors": (trace.kind == "spark").then_some(names.len()),
        "input_bytes": trace.input_bytes(),
        "shuffle_read_remote_bytes": trace.shuffle_read_remote_bytes(),
        "shuffle_read_local_bytes": trace.shuffle_read_local_bytes(),
        "shuffle_write_bytes": trace.shuffle_write_bytes(),
        "output_bytes": trace.output_bytes(),
        "matrix": matrix,
        "warnings": trace.warnings,
    })
}

/// The accounts of one class.
struct Class {
    name: String,
    evidence: Evidence,
    /// State, energy, seconds.
    states: Vec<(&'static str, Energy, f64)>,
    ports: usize,
}

/// Accounts summed by class and state.
fn by_class(accounts: &[Account]) -> Vec<Class> {
    let mut classes: Vec<Class> = Vec::new();
    for account in accounts {
        let i = classes.iter().position(|c| c.name == account.group).unwrap_or_else(|| {
            let states = account.states.iter().map(|s| (s.state, Energy::ZERO, 0.0)).collect();
            classes.push(Class { name: account.group.clone(), evidence: account.evidence, states, ports: 0 });
            classes.len() - 1
        });
        let class = &mut classes[i];
        class.evidence = class.evidence.with(account.evidence);
        class.ports += 1;
        for (sum, state) in class.states.iter_mut().zip(&account.states) {
            sum.1 += state.energy;
            sum.2 += state.time.seconds();
        }
    }
    classes
}

pub(crate) fn ledger(accounts: &[Account]) -> Value {
    let rows = accounts.iter().flat_map(|a| {
        a.states.iter().map(move |s| {
            json!({
                "account": a.name, "class": a.group, "profile": a.profile, "evidence": a.evidence,
                "state": s.state, "time_s": s.time.seconds(), "entries": s.entries, "energy_j": s.energy.joules(),
                "energy_aj": s.energy.base().to_string(),
            })
        })
    });
    Value::Array(rows.collect())
}

fn histogram(latency: &Histogram) -> Value {
    latency.buckets().map(|(low, high, count)| json!([low as f64 / 1e12, high as f64 / 1e12, count])).collect()
}

pub(crate) fn cluster(result: &ClusterResult) -> Value {
    let n = &result.network;
    let mut energy = Map::new();
    let total = n.accounts.iter().fold(Energy::ZERO, |sum, a| sum + a.energy);
    energy.insert("total".into(), total.joules().into());
    let mut states = Map::new();
    let mut evidence: Option<Evidence> = None;
    let mut check = Energy::ZERO;
    for Class { name: class, evidence: kind, states: sums, ports } in by_class(&n.accounts) {
        let of_class = sums.iter().fold(Energy::ZERO, |sum, s| sum + s.1);
        check += of_class;
        energy.insert(class.clone(), of_class.joules().into());
        evidence = Some(evidence.map_or(kind, |e| e.with(kind)));
        let shares: Map<String, Value> =
            sums.iter().map(|s| (s.0.to_string(), (s.2 / (n.duration_s * ports as f64).max(1e-12)).into())).collect();
        states.insert(class, Value::Object(shares));
    }
    assert_eq!(check, total, "leaves sum to the total");
    let job_seconds: Vec<f64> = result.jobs.iter().map(|j| j.end.since(j.submit).seconds()).collect();
    let runtime = result.jobs.iter().map(|j| j.end.seconds()).fold(None, |m: Option<f64>, e| Some(m.map_or(e, |m| m.max(e))));
    let runtime = runtime.map_or(n.duration_s, |end| end - result.jobs.iter().map(|j| j.submit.seconds()).fold(f64::INFINITY, f64::min));
    let drops: u64 = n.classes.iter().map(|c| c.queue.lost()).sum();
    let probes = result.probes.as_ref().map(|p| {
        json!({
            "sent": p.sent, "answered": p.latency.count(), "unanswered": p.unanswered,
            "latency_s_mean": p.latency.mean_s(), "latency_s_p50": p.latency.quantile_s(0.5), "latency_s_p99": p.latency.quantile_s(0.99),
            "latency_s_p999": p.latency.quantile_s(0.999), "latency_histogram": histogram(&p.latency),
        })
    });
    let by_kind = |of: &dyn Fn(KindCount) -> u64| {
        let sum = |part: &dyn Fn(&QueueCount) -> KindCount| n.classes.iter().map(|c| of(part(&c.queue))).sum::<u64>();
        json!({"offered": sum(&|q| q.offered), "early_drops": sum(&|q| q.early_drops), "overflows": sum(&|q| q.overflows), "marks": sum(&|q| q.marks)})
    };
    let metrics = json!({
        "runtime_s": runtime,
        "job_runtime_s_mean": (!job_seconds.is_empty()).then(|| job_seconds.iter().sum::<f64>() / job_seconds.len() as f64),
        "shuffle_ratio_mean": (!job_seconds.is_empty()).then(|| {
            result.jobs.iter().zip(&job_seconds).map(|(j, s)| j.shuffle.seconds() / s.max(1e-12)).sum::<f64>() / job_seconds.len() as f64
        }),
        "throughput_bps_node_mean": n.goodput_bytes as f64 * 8.0 / n.duration_s.max(1e-12) / f64::from(result.workers),
        "latency_s_mean": n.latency.mean_s(),
        "latency_s_p50": n.latency.quantile_s(0.5),
        "latency_s_p99": n.latency.quantile_s(0.99),
        "latency_s_p999": n.latency.quantile_s(0.999),
        "energy_j": energy,
        "energy_delay_js": total.joules() * runtime,
        "evidence": evidence.map(Evidence::as_str),
        "state_ratio": states,
        "probes": probes,
        "drops": drops,
        "packets": {
            "data": by_kind(&|k| k.data), "retransmission": by_kind(&|k| k.retransmission), "ack": by_kind(&|k| k.ack), "syn": by_kind(&|k| k.syn),
        },
        "retransmissions": n.retransmissions,
        "timeouts": n.timeouts,
        "packet_hops": n.packet_hops,
        "flows": n.flows,
        "goodput_bytes": n.goodput_bytes,
        "local_bytes": result.local_bytes,
        "blocks_read": {"own_host": result.blocks_read[0], "own_rack": result.blocks_read[1], "beyond": result.blocks_read[2]},
        "workers": result.workers,
        "classes": n.classes,
        "latency_histogram": histogram(&n.latency),
        "jobs": result.jobs.iter().map(|j| json!({
            "name": j.name, "submit_s": j.submit.seconds(), "end_s": j.end.seconds(), "shuffle_s": j.shuffle.seconds(),
            "stages": j.stages.iter().map(|(name, end)| json!({"name": name, "end_s": end.seconds()})).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    });
    let observed = &n.observed;
    let asked = observed.sample_s.is_some() || !observed.connection.is_empty();
    json!({"metrics": metrics, "ledger": ledger(&n.accounts), "observed": asked.then_some(observed)})
}
