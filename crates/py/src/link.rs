//! A single link, from JSON to JSON.

use crate::errors::{PlanError, TraceFileError, os_error, plan_error};
use joulepath_net::{Arrivals, Frames, LinkSpec, LpiMode, Policy, phys, simulate_link, theory};
use joulepath_units::Bytes;
use pyo3::PyResult;
use serde::Deserialize;
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    phy: String,
    policy: Policy,
    lpi: LpiMode,
    lpi_power: f64,
    method: Method,
    arrivals: Kind,
    load: f64,
    frame: Bytes,
    /// `None` picks the default for the source of frames.
    overhead: Option<Bytes>,
    frames: u64,
    seed: u64,
    trace: Option<String>,
    departures: Option<String>,
}

#[derive(Deserialize, PartialEq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Method {
    Simulate,
    Analytic,
}

#[derive(Deserialize, PartialEq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Poisson,
    Pareto,
}

fn refuse(key: &str, sentence: String) -> pyo3::PyErr {
    PlanError::new_err((key.to_string(), sentence))
}

pub(crate) fn run(json: &str) -> PyResult<String> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let r: Request =
        serde_path_to_error::deserialize(&mut reader).map_err(|e| plan_error(&e.path().to_string(), &e.inner().to_string()))?;
    let names = || phys().iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ");
    let phy = phys()
        .iter()
        .find(|p| p.name == r.phy)
        .ok_or_else(|| refuse("--phy", format!("found {:?}; expected one of {}", r.phy, names())))?;
    if r.trace.is_none() && !(r.load > 0.0 && r.load <= 1.0) {
        return Err(refuse("--load", format!("found {}; expected a share of line rate above 0 and at most 1", r.load)));
    }
    if !(1..=65_000).contains(&r.frame.base()) {
        return Err(refuse("--frame", format!("found {}; expected 1 B to 65000 B", r.frame)));
    }
    if !(1..=1_000_000_000).contains(&r.frames) {
        return Err(refuse("--frames", format!("found {}; expected 1 to 1000000000", r.frames)));
    }
    if !(0.0..=1.0).contains(&r.lpi_power) {
        return Err(refuse("--lpi-power", format!("found {}; expected a share of full power from 0 to 1", r.lpi_power)));
    }
    let mut warnings = Vec::new();
    let mut default_overhead = 38;
    let arrivals = match &r.trace {
        Some(path) => {
            let trace =
                Frames::read(File::open(path).map_err(|e| os_error(path, &e))?).map_err(|e| TraceFileError::new_err(e.to_string()))?;
            if trace.with_ethernet_header {
                // The capture has the 14-byte header; frame check, preamble and gap are still missing.
                default_overhead = 24;
            }
            if trace.from_first_frame && !trace.with_ethernet_header {
                warnings.push("the times look like dates: they count from the first frame".to_string());
            }
            if trace.out_of_order > 0 {
                warnings.push(format!(
                    "{} frames have an earlier time than the frame before them; they count as simultaneous with it",
                    trace.out_of_order
                ));
            }
            Arrivals::Trace(trace.frames)
        }
        None if r.arrivals == Kind::Pareto => Arrivals::Pareto { load: r.load, frame: r.frame, frames: r.frames },
        None => Arrivals::Poisson { load: r.load, frame: r.frame, frames: r.frames },
    };
    let overhead = r.overhead.unwrap_or(Bytes::from_base(default_overhead));
    let full_w = phy.power.watts();
    let low_w = phy.profile(r.lpi_power).power[2].watts();
    let mut out = json!({
        "phy": phy.name, "policy": r.policy.to_string(), "lpi": if r.lpi == LpiMode::Both { "both" } else { "independent" },
        "lpi_power_ratio": r.lpi_power, "overhead_bytes": overhead.base(), "power_w": full_w, "source": phy.source,
    });
    let fill = |out: &mut serde_json::Value, more: serde_json::Value| {
        if let (Some(out), serde_json::Value::Object(more)) = (out.as_object_mut(), more) {
            out.extend(more);
        }
    };
    if r.method == Method::Analytic {
        if !matches!(arrivals, Arrivals::Poisson { .. }) || r.lpi == LpiMode::Both || r.departures.is_some() {
            return Err(refuse(
                "--method",
                "found analytic; expected Poisson arrivals, independent directions and no --departures: use --method simulate".into(),
            ));
        }
        let frame_s = phy.rate.time_for(r.frame + overhead).seconds();
        let t = theory(r.policy, phy, r.load, frame_s).map_err(|e| refuse("--method", e))?;
        let duration = r.frames as f64 * frame_s / r.load;
        let [active, sleeping, lpi, waking] = t.shares.map(|s| s * duration);
        let energy = (active + sleeping + waking) * full_w + lpi * low_w;
        fill(
            &mut out,
            json!({
                "method": "analytic", "evidence": phy.evidence, "frames": r.frames, "load_ratio": r.load, "duration_s": duration,
                "energy_ratio": energy / (duration * full_w), "lpi_ratio": t.shares[2],
                "wait_s_mean": t.wait_s_mean, "wait_s_p50": null, "wait_s_p99": null,
                "sleeps_per_s": t.sleeps_per_s, "frames_per_burst_mean": t.frames_per_burst,
                "time_s": {"active": active, "sleeping": sleeping, "lpi": lpi, "waking": waking},
                "energy_j": energy, "warnings": ["percentiles of the wait have no closed form here: they are n/a"],
            }),
        );
        return Ok(out.to_string());
    }
    let spec = LinkSpec { phy: phy.clone(), policy: r.policy, lpi: r.lpi, lpi_power: r.lpi_power, overhead };
    // Departures go to a file beside the final one, which appears only when it is complete.
    let partial = r.departures.as_ref().map(|p| format!("{p}.partial"));
    let mut writer = match &partial {
        Some(path) => Some(BufWriter::new(File::create(path).map_err(|e| os_error(path, &e))?)),
        None => None,
    };
    let mut failure = None;
    let decimal = |ps: u64| format!("{}.{:012}", ps / 1_000_000_000_000, ps % 1_000_000_000_000);
    let result = simulate_link(&spec, &arrivals, r.seed, |d| {
        if let Some(w) = writer.as_mut().filter(|_| failure.is_none()) {
            failure = writeln!(w, "{} {} {}", decimal(d.arrival_ps), d.bytes, decimal(d.departure_ps)).err();
        }
    });
    if let (Some(mut w), Some(partial), Some(path)) = (writer, &partial, &r.departures) {
        let ended = failure.map_or(Ok(()), Err).and_then(|()| w.flush()).and_then(|()| std::fs::rename(partial, path));
        if let Err(error) = ended {
            let _ = std::fs::remove_file(partial);
            return Err(os_error(path, &error));
        }
    }
    let time = |i: usize| result.account.states[i].time.seconds();
    let energy = result.account.energy.joules();
    fill(
        &mut out,
        json!({
            "method": "simulate", "evidence": result.account.evidence, "frames": result.frames, "load_ratio": result.load, "duration_s": result.duration_s,
            "energy_ratio": energy / (result.duration_s * full_w), "lpi_ratio": time(2) / result.duration_s,
            "wait_s_mean": result.wait.mean_s(), "wait_s_p50": result.wait.quantile_s(0.5), "wait_s_p99": result.wait.quantile_s(0.99),
            "sleeps_per_s": result.wakes as f64 / result.duration_s,
            "frames_per_burst_mean": (result.wakes > 0).then(|| result.frames as f64 / result.wakes as f64),
            "time_s": {"active": time(0), "sleeping": time(1), "lpi": time(2), "waking": time(3)},
            "energy_j": energy, "warnings": warnings,
        }),
    );
    Ok(out.to_string())
}
