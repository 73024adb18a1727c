"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const page = document.getElementById("page");
  page.replaceChildren();
  // Okabe and Ito (2008): distinct for every kind of colour vision and in grey.
  const colours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#b8a600", "#7a5cc4", "#333f48"];
  const stateColours = { active: "#d55e00", sleeping: "#e69f00", lpi: "#56b4e9", waking: "#cc79a7" };
  // Beyond this many runs a record is a grid: its figures say more than charts of every run.
  const MANY = 16;
  const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"], [1e-12, "p"]];

  const digits = (v) => { const a = Math.abs(v); return v.toFixed(a >= 99.95 ? 0 : a >= 9.995 ? 1 : a >= 0.9995 ? 2 : 3); };
  const quantity = (v, unit) => {
    if (v === null || v === undefined) return "n/a";
    if (v === 0) return "0 " + unit;
    const [size, prefix] = PREFIXES.find(([s]) => Math.abs(v) >= s * 0.9995) ?? [1e-12, "p"];
    return digits(v / size) + " " + prefix + unit;
  };
  const percent = (v, signed) => (v === null || v === undefined ? "n/a" : (signed && v >= 0 ? "+" : "") + (100 * v).toFixed(1) + " %");
  const el = (name, attributes = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children.filter((c) => c !== null && c !== undefined));
    return node;
  };
  const badge = (kind, text) => el("span", { class: "badge " + kind }, text ?? kind);
  const table = (columns, rows) => {
    const head = el("tr", {}, ...columns.map((c) => el("th", { scope: "col" }, c)));
    const body = rows.map((r) => el("tr", {}, ...r.map((c) => (c instanceof Node ? c : el("td", {}, String(c))))));
    return el("div", { class: "wide" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
  };
  const figure = (title, badges, chart, caption, columns, rows) => {
    chart.setAttribute("role", "img");
    chart.setAttribute("aria-label", title);
    return el("figure", { class: "card" }, el("header", {}, el("h2", {}, title), ...badges()), chart, el("figcaption", {}, caption, " Plan: ", el("code", {}, made)),
      el("details", {}, el("summary", {}, "the numbers"), table(columns, rows)));
  };
  const plot = (options) => Plot.plot({ width: 980, marginBottom: 44, style: { fontSize: "12.5px", fontFamily: "inherit", overflow: "visible" }, ...options });
  const labelMargin = (labels) => Math.min(330, 26 + 7.2 * Math.max(...labels.map((l) => String(l).length)));

  let made = "";  // the plan of the section that is being drawn

  const unitOf = (metric) => {
    const name = metric.split(".").find((p) => /_(s|j|js|bps|ratio|bytes)(_|$)/.test(p)) ?? metric;
    if (/_js(_|$)/.test(name)) return "J·s";
    if (/_j(_|$)/.test(name)) return "J";
    if (/_bps(_|$)/.test(name)) return "b/s";
    if (/_s(_|$)/.test(name)) return "s";
    if (/_bytes/.test(name)) return "B";
    return "";
  };
  const nameOf = (metric) => metric.replace(/_(j|js|s|bps)(?=[._]|$)/g, "").replace(/[._]/g, " ");

  const summary = (runs) => {
    const first = runs[0], comparable = runs.length <= MANY;
    const best = (f) => Math.min(...runs.map(f));
    const mark = (run, f, text) => el("td", comparable && f(run) === best(f) && runs.length > 1 ? { class: "best" } : {}, text);
    const relative = (cells) => (comparable ? cells : []);
    const probed = runs.some((r) => r.probes);
    const services = (r) => (probed ? ["p50", "p99", "p999"].map((p) => quantity(r.probes?.["latency_s_" + p], "s")) : []);
    const rows = runs.map((r) => [
      r.label, mark(r, (q) => q.runtime_s, quantity(r.runtime_s, "s")), ...relative([percent(r.runtime_s / first.runtime_s - 1, true)]),
      quantity(r.latency_s_mean, "s"), quantity(r.latency_s_p99, "s"), ...services(r),
      mark(r, (q) => q.energy_j.total, quantity(r.energy_j.total, "J")),
      ...relative([percent(r.energy_j.total / first.energy_j.total), ...(probed ? [] : [mark(r, (q) => q.energy_delay_js, percent(r.energy_delay_js / first.energy_delay_js))])]), r.drops.toLocaleString("en"), r.timeouts.toLocaleString("en"),
    ]);
    const names = ["run", "runtime", ...relative(["change"]), "latency", "99th perc.", ...(probed ? ["probe median", "99th perc.", "99.9th"] : []), "energy", ...relative(["of first", ...(probed ? [] : ["energy × delay"])]), "drops", "timeouts"];
    return table(names, rows);
  };

  const energyByClass = (runs, badges) => {
    const classes = Object.keys(data.classes).filter((c) => runs.some((r) => c in r.energy_j));
    const rows = runs.flatMap((r) => classes.map((c) => ({ run: r.label, class: data.classes[c], energy: r.energy_j[c] ?? 0 })));
    const labels = runs.map((r) => r.label);
    const chart = plot({
      marginLeft: labelMargin(labels), marginRight: 70, height: 60 + 30 * runs.length,
      color: { domain: classes.map((c) => data.classes[c]), range: colours, legend: true },
      x: { label: "energy (J)", grid: true }, y: { domain: labels, label: null },
      marks: [
        Plot.barX(rows, { x: "energy", y: "run", fill: "class", tip: true, insetTop: 3, insetBottom: 3 }),
        Plot.text(runs, { x: (r) => r.energy_j.total, y: "label", text: (r) => quantity(r.energy_j.total, "J"), textAnchor: "start", dx: 5 }),
        Plot.ruleX([0]),
      ],
    });
    return figure("Energy of all ports, by class", badges, chart,
      "Each port is one end of a link and stands for the direction that it sends. Bars are sums over ports and over the whole run.",
      ["run", ...classes.map((c) => data.classes[c] + " (J)"), "total (J)"],
      runs.map((r) => [r.label, ...classes.map((c) => (c in r.energy_j ? r.energy_j[c].toFixed(3) : "n/a")), r.energy_j.total.toFixed(3)]));
  };

  const tradeOff = (runs, badges) => {
    const first = runs[0];
    const rows = runs.map((r) => ({ run: r.label, slower: 100 * (r.runtime_s / first.runtime_s - 1), energy: 100 * r.energy_j.total / first.energy_j.total }));
    const xs = rows.map((r) => r.slower), span = Math.max(1, Math.max(...xs) - Math.min(...xs));
    const chart = plot({
      height: 360, marginLeft: 60, marginRight: 30,
      x: { label: "change of runtime (%)", grid: true, domain: [Math.min(...xs) - 0.05 * span, Math.max(...xs) + 0.12 * span] },
      y: { label: "energy, of " + first.label + " (%)", grid: true, domain: [0, Math.max(100, ...rows.map((r) => r.energy)) * 1.05] },
      color: { domain: rows.map((r) => r.run), range: colours }, symbol: { domain: rows.map((r) => r.run), legend: true },
      marks: [
        Plot.ruleX([0], { strokeOpacity: 0.4 }), Plot.ruleY([0]),
        Plot.dot(rows, { x: "slower", y: "energy", r: 6, stroke: "run", fill: "run", fillOpacity: 0.35, symbol: "run", strokeWidth: 2, tip: true }),
      ],
    });
    return figure("What is saved against what it costs", badges, chart, "Down is less energy, right is slower; the lower left is best. Both against the first run.",
      ["run", "change of runtime (%)", "energy (%)"], rows.map((r) => [r.run, r.slower.toFixed(3), r.energy.toFixed(2)]));
  };

  const states = (runs, badges) => {
    const classes = Object.keys(data.classes).filter((c) => runs.some((r) => c in r.state_ratio));
    const rows = runs.flatMap((r) => classes.flatMap((c) => Object.entries(r.state_ratio[c] ?? {}).map(([state, share]) => ({ run: r.label, class: data.classes[c], state, share: 100 * share }))));
    const labels = runs.map((r) => r.label);
    const chart = plot({
      marginLeft: labelMargin(labels), height: 80 + 24 * runs.length, marginTop: 40,
      color: { domain: Object.keys(stateColours), range: Object.values(stateColours), legend: true },
      x: { label: "share of time (%)", ticks: 3 }, y: { domain: labels, label: null }, fx: { label: null, domain: classes.map((c) => data.classes[c]), padding: 0.12 },
      marks: [Plot.barX(rows, { x: "share", y: "run", fx: "class", fill: "state", tip: true, insetTop: 2, insetBottom: 2 }), Plot.ruleX([0])],
    });
    return figure("Where the time of links goes", badges, chart, "Full power is drawn in every state except low-power idle (lpi).",
      ["run", "class", "state", "share (%)"], rows.map((r) => [r.run, r.class, r.state, r.share.toFixed(3)]));
  };

  const dashes = ["", "7 3", "2 3", "9 3 2 3", "1 4", "12 4"];
  const tail = (runs, of, label, title, badges, caption, columns, cells) => {
    const rows = runs.flatMap((r) => of(r).map(([s, share]) => ({ run: r.label, latency: s * 1e6, late: 1 - share })).filter((r) => r.late > 0 && r.latency > 0));
    const labels = runs.map((r) => r.label);
    const chart = plot({
      height: 380, marginLeft: 70, color: { domain: labels, range: colours, legend: true },
      x: { type: "log", label, grid: true, tickFormat: "~s" }, y: { type: "log", label: "share that takes longer", grid: true, tickFormat: "~%" },
      marks: labels.map((label, i) => Plot.lineY(rows.filter((r) => r.run === label), { x: "latency", y: "late", stroke: () => label, strokeDasharray: dashes[i % dashes.length], strokeWidth: 2 })),
    });
    return figure(title, badges, chart, caption, columns, runs.map(cells));
  };
  const latency = (runs, badges) => tail(runs, (r) => r.latency, "packet latency (µs)", "How long packets take", badges,
    "From the sender's network card to the receiving host, data packets only. Lower left is faster; the tail is on the right.",
    ["run", "mean", "99th percentile"], (r) => [r.label, quantity(r.latency_s_mean, "s"), quantity(r.latency_s_p99, "s")]);
  const probed = (runs, badges) => tail(runs, (r) => r.probes.latency, "request to response (µs)", "What services beside the job feel", badges,
    "Probes: small requests and responses between random hosts, sent at random times whether or not earlier ones were answered.",
    ["run", "sent", "unanswered at the end", "median", "99th percentile", "99.9th percentile"],
    (r) => [r.label, r.probes.sent.toLocaleString("en"), r.probes.unanswered, ...["p50", "p99", "p999"].map((p) => quantity(r.probes["latency_s_" + p], "s"))]);

  const kinds = { data: "data", retransmission: "retransmissions", ack: "acknowledgements", syn: "SYN, SYN-ACK" };
  const reasons = { early_drops: "dropped early", overflows: "buffer full" };
  const packets = (runs, badges) => {
    const share = (p, what) => (p.offered ? 100 * p[what] / p.offered : 0);
    const rows = runs.flatMap((r) => Object.keys(kinds).flatMap((k) => Object.keys(reasons).map((why) => ({ run: r.label, kind: kinds[k], reason: reasons[why], share: share(r.packets[k], why) }))));
    const labels = runs.map((r) => r.label);
    const chart = plot({
      marginLeft: labelMargin(labels), height: 90 + 24 * runs.length, marginTop: 40,
      color: { domain: Object.values(reasons), range: ["#d55e00", "#0072b2"], legend: true },
      x: { label: "lost, of the packets of this kind that reached a queue (%)", ticks: 4, grid: true }, y: { domain: labels, label: null }, fx: { label: null, domain: Object.values(kinds), padding: 0.12 },
      marks: [Plot.barX(rows, { x: "share", y: "run", fx: "kind", fill: "reason", tip: true, insetTop: 2, insetBottom: 2 }), Plot.ruleX([0])],
    });
    const cell = (p, what) => (p.offered ? p[what].toLocaleString("en") + " (" + share(p, what).toFixed(3) + " %)" : "n/a");
    return figure("Which packets are lost", badges, chart, "A queue that drops what it cannot mark loses acknowledgements and handshakes while data passes.",
      ["run", "kind", "reached a queue", "dropped early", "buffer full", "marked"],
      runs.flatMap((r) => Object.entries(kinds).map(([k, name]) => [r.label, name, r.packets[k].offered.toLocaleString("en"), ...["early_drops", "overflows", "marks"].map((w) => cell(r.packets[k], w))])));
  };

  const lengths = (runs, badges) => {
    const rows = runs.flatMap((r) => r.queues.histograms.filter((h) => h.class !== "nic").flatMap((h) => {
      const total = h.packets.reduce((sum, p) => sum + p[1], 0);
      let seen = 0;
      const all = h.packets.map(([n, count]) => { seen += count; return { run: r.label, class: data.classes[h.class], packets: n, longer: 1 - seen / total }; });
      return all.filter((row, i) => row.longer > 0 && (i % Math.ceil(all.length / 150) === 0 || i === all.length - 2));
    }));
    const labels = runs.map((r) => r.label), classes = [...new Set(rows.map((r) => r.class))];
    const chart = plot({
      height: 90 + 190 * classes.length, marginLeft: 70, marginRight: 110, color: { domain: labels, range: colours, legend: true }, fy: { label: null, domain: classes },
      x: { label: "packets in the buffer", grid: true, ...(Math.max(...rows.map((r) => r.packets)) > 300 ? { type: "symlog" } : {}) }, y: { type: "log", label: "share of time with more", grid: true, tickFormat: "~%" },
      marks: labels.map((label, i) => Plot.lineY(rows.filter((r) => r.run === label), { x: "packets", y: "longer", fy: "class", stroke: () => label, strokeDasharray: dashes[i % dashes.length], strokeWidth: 2 })),
    });
    return figure("How full buffers are", badges, chart, "Samples of all ports of a class, every " + quantity(runs[0].queues.sample_s, "s") + ".",
      ["run", "class", "packets", "share of time with more"], rows.map((r) => [r.run, r.class, r.packets, r.longer.toPrecision(3)]));
  };
  const series = (runs, badges) => {
    const rows = runs.flatMap((r) => r.queues.series.flatMap((s) => s.packets.map((n, i) => ({ run: r.label, port: s.port, time: (i + 1) * s.step_s, packets: n }))));
    const ports = [...new Set(rows.map((r) => r.port))], labels = runs.map((r) => r.label);
    const chart = plot({
      height: 90 + 170 * ports.length, marginLeft: 60, marginRight: labelMargin(ports), color: { domain: labels, range: colours, legend: true }, fy: { label: null, domain: ports },
      x: { label: "time (s)", grid: true }, y: { label: "packets in the buffer", grid: true },
      marks: labels.map((label) => Plot.lineY(rows.filter((r) => r.run === label), { x: "time", y: "packets", fy: "port", stroke: () => label, strokeWidth: 1.2, strokeOpacity: 0.8 })),
    });
    return figure("Buffers over time", badges, chart, "The highest sample of each " + quantity(runs[0].queues.series[0].step_s, "s") + "; every sample is in observed.json of the run.",
      ["run", "port", "highest"], runs.flatMap((r) => r.queues.series.map((s) => [r.label, s.port, Math.max(...s.packets)])));
  };

  const planned = (f, badges) => {
    const relative = Boolean(f.relative_to);
    // Seconds and joules with the prefix that suits the largest value.
    const base = relative ? "" : unitOf(f.y), top = Math.max(...f.rows.map((r) => Math.abs(r.y)));
    const [size, prefix] = (base && top > 0 && PREFIXES.find(([s]) => top >= s * 0.9995)) || [1, ""];
    f = { ...f, rows: f.rows.map((r) => ({ ...r, y: r.y / size, ...(r.low === undefined ? {} : { low: r.low / size, high: r.high / size }) })) };
    const unit = relative ? "of " + f.relative_to.split(" & ").map((c) => c.split("=").slice(1).join("=")).join(", ") : prefix + base;
    const label = nameOf(f.y) + (unit ? " (" + unit + ")" : "");
    const across = f.rows.filter((r) => r.dashed), dash = f.dashed?.split(" & ").map((c) => c.split("=").slice(1).join("=")).join(", ");
    f = { ...f, rows: f.rows.filter((r) => !r.dashed) };
    const seriesNames = [...new Set(f.rows.map((r) => r.series))];
    const facets = [...new Set(f.rows.map((r) => r.facet))];
    const xs = [...new Set(f.rows.map((r) => r.x))];
    const numeric = xs.every((x) => typeof x === "number");
    const common = { x: "x", y: "y", tip: true };
    const faceted = facets.length > 1 ? { fy: "facet" } : {};
    const ranged = f.rows.filter((r) => r.low !== undefined);
    const ys = f.rows.map((r) => r.y).filter((y) => y > 0);
    const log = f.kind !== "bar" && ys.length === f.rows.length && Math.max(...ys) > 8 * Math.min(...ys);
    const marks = [];
    let extra = {};
    const long = !numeric && xs.map(String).join("").length > 110;
    if (f.kind === "bar" && long && seriesNames.length === 1 && facets.length === 1) {
      marks.push(Plot.barX(f.rows, { y: "x", x: "y", fill: colours[0], tip: true, insetTop: 3, insetBottom: 3 }), Plot.ruleY(ranged, { y: "x", x1: "low", x2: "high", strokeOpacity: 0.7 }), Plot.ruleX([0]),
        Plot.text(f.rows, { y: "x", x: (r) => r.high ?? r.y, text: (r) => digits(r.y), textAnchor: "start", dx: 5 }), ...(relative ? [Plot.ruleX([1], { strokeOpacity: 0.4 })] : []));
      const chart = plot({ height: 60 + 26 * xs.length, marginLeft: labelMargin(xs), marginRight: 60, x: { label, grid: true, zero: true }, y: { label: null, domain: xs }, marks });
      return figure(f.title, badges, chart, f.note ?? "", [f.x, label], f.rows.map((r) => [r.x, r.y.toPrecision(5)]));
    }
    if (f.kind === "bar") {
      const many = seriesNames.length > 1;
      const keys = many ? { x: "series", fx: "x", ...faceted } : { x: "x", ...faceted };
      marks.push(Plot.barY(f.rows, { ...keys, y: "y", fill: many ? "series" : colours[0], tip: true }), Plot.ruleX(ranged, { ...keys, y1: "low", y2: "high", strokeOpacity: 0.7 }), Plot.ruleY([0]));
      extra = many ? { x: { axis: null, domain: seriesNames }, fx: { label: f.x === "label" ? null : f.x, domain: xs } } : { x: { label: f.x === "label" ? null : f.x, domain: xs } };
    } else {
      const stroke = seriesNames.length > 1 ? { stroke: "series" } : { stroke: () => label };
      if (f.kind === "line") marks.push(Plot.lineY(f.rows, { ...common, ...faceted, ...stroke, strokeWidth: 2 }));
      marks.push(Plot.dot(f.rows, { ...common, ...faceted, ...stroke, tip: f.kind === "dot", symbol: seriesNames.length > 1 ? "series" : "circle", r: 4 }));
      if (relative) marks.push(Plot.ruleY([1], { strokeOpacity: 0.4 }));
      extra = { x: { label: f.x, grid: true, ...(numeric ? {} : { type: "point", domain: xs }) }, symbol: { domain: seriesNames, legend: seriesNames.length > 1 } };
    }
    if (facets.length > 1) {
      extra.height = 90 + 190 * facets.length;
      extra.marginRight = labelMargin(facets);
      extra.fy = { label: null, domain: facets };
    }
    if (ranged.length && f.kind !== "bar") marks.push(Plot.ruleX(ranged, { x: "x", y1: "low", y2: "high", ...faceted, strokeOpacity: 0.7 }));
    // One line across for each value: the runs behind it differ in what does not matter there.
    if (across.length) marks.push(Plot.ruleY([across.reduce((sum, r) => sum + r.y, 0) / across.length], { strokeDasharray: "6 4", strokeWidth: 1.5 }));
    const chart = plot({
      height: 360, marginLeft: 70, marginBottom: 44, color: { domain: seriesNames, range: colours, legend: seriesNames.length > 1 && f.kind === "bar" },
      y: { label: label + (log ? ", logarithmic" : ""), grid: true, ...(log ? { type: "log", tickFormat: "~g" } : {}), ...(f.kind === "bar" ? { zero: true } : {}) }, ...extra, marks,
    });
    const line = across.length ? " Dashed: " + dash + ", " + digits(across.reduce((sum, r) => sum + r.y, 0) / across.length) + "." : "";
    const spread = ranged.length ? " Means over runs; thin rules show the smallest and the largest." : "";
    return figure(f.title, badges, chart, (f.note ?? "") + line + spread, [f.x, f.series ?? "", f.facet ?? "", label].filter(Boolean),
      f.rows.map((r) => [r.x, ...(f.series ? [r.series] : []), ...(f.facet ? [r.facet] : []), r.y.toPrecision(5)]));
  };

  const toml = (v) => (v === null || typeof v !== "object" ? (typeof v === "string" ? JSON.stringify(v) : String(v)) : Object.keys(v).length ? "{ " + Object.entries(v).map(([k, x]) => k + " = " + toml(x)).join(", ") + " }" : "as it is");
  const recommended = (r, badges) => {
    const out = [];
    const lines = Object.entries(r.choice.settings).map(([k, v]) => el("li", {}, el("code", {}, k + " = " + toml(v))));
    const kept = r.limits.map((l) => el("li", {}, l.limit + ": " + quantity(l.value, unitOf(l.metric)) + ", " + percent(-l.excess_ratio) + " inside (95 %: " + percent(-l.excess_ratio_interval95[1]) + " to " + percent(-l.excess_ratio_interval95[0]) + ")"));
    const [low, high] = r.choice.objective_ratio_interval95;
    out.push(el("figure", { class: "card" }, el("header", {}, el("h2", {}, "The choice: " + r.choice.name), ...badges()),
      el("p", {}, r.objective + ": " + percent(r.choice.objective_ratio - 1, true) + " against the baseline (95 %: " + percent(low - 1, true) + " to " + percent(high - 1, true) + ")."),
      el("ul", {}, ...lines, ...kept, ...r.notes.map((n) => el("li", {}, n)))));
    const metric = [...r.limits].reverse().find((l) => r.choice.metrics[l.metric] !== undefined && r.baseline[l.metric])?.metric ?? Object.keys(r.baseline)[0];
    const point = (name, group, x, y, settings) => ({ name, group, x: 100 * x, y: 100 * y, settings });
    const groups = ["quarter of the job, keeps the limits", "quarter of the job, breaks one", "whole job", "chosen"];
    const points = [
      ...r.searched.filter((s) => s.metrics_ratio[metric] !== null).map((s) => point("", groups[s.excess_ratio > 0 ? 1 : 0], s.metrics_ratio[metric], s.objective_ratio, Object.entries(s.settings).map(([k, v]) => k + " = " + toml(v)).join("\n"))),
      ...r.finalists.map((f) => point(f.name, groups[f.name === r.choice.name ? 3 : 2], f.metrics[metric] / r.baseline[metric], f.objective_ratio, [f.name, ...Object.entries(f.settings).map(([k, v]) => k + " = " + toml(v))].join("\n"))),
    ];
    const wide = (key) => { const v = points.map((p) => p[key]).filter((x) => x > 0); return Math.max(...v) > 8 * Math.min(...v) ? { type: "log", tickFormat: "~g" } : {}; };
    out.push(el("figure", { class: "card" }, el("header", {}, el("h2", {}, "On the whole job"), ...badges()),
      table(["", r.objective, "95 %", ...Object.keys(r.baseline).map(nameOf), "Pareto", "limits"], r.finalists.map((f) => [f.name, percent(f.objective_ratio - 1, true),
        f.name === "baseline" ? "" : "±" + (50 * (f.objective_ratio_interval95[1] - f.objective_ratio_interval95[0])).toFixed(1), ...Object.keys(r.baseline).map((m) => quantity(f.metrics[m], unitOf(m))),
        r.pareto.includes(f.name) ? "yes" : "", f.name === r.choice.name ? "chosen" : f.holds ? "kept" : "broken"])),
      el("ul", {}, ...r.finalists.filter((f) => Object.keys(f.settings).length).map((f) => el("li", {}, f.name + ": ", el("code", {}, Object.entries(f.settings).map(([k, v]) => k + " = " + toml(v)).join("; "))))),
      el("figcaption", {}, "Means over " + r.seeds + " seeds, paired with the baseline's.")));
    out.push(figure("What was searched", badges, plot({
      height: 400, marginLeft: 70, marginRight: 90, color: { domain: groups, range: ["#56b4e9", "#bbbbbb", "#0072b2", "#d55e00"], legend: true }, symbol: { domain: groups, range: ["circle", "times", "square", "star"] },
      x: { label: nameOf(metric) + ", of the baseline (%)", grid: true, ...wide("x") }, y: { label: r.objective + ", of the baseline (%)", grid: true, ...wide("y") },
      marks: [Plot.dot(points, { x: "x", y: "y", stroke: "group", symbol: "group", r: (p) => (p.name ? 7 : 4), strokeWidth: 1.8, title: "settings", tip: true }),
        Plot.text(points.filter((p) => p.group === groups[3] || p.name === "baseline"), { x: "x", y: "y", text: "name", dx: 10, textAnchor: "start" })],
    }), "Every candidate of the first round, and those that ran on the whole job. Lower left is better.", ["candidate", nameOf(metric) + " (%)", r.objective + " (%)"],
      points.map((p) => [p.name || p.settings, p.x.toFixed(1), p.y.toFixed(1)])));
    if (r.sensitivity.length) {
      const rows = r.sensitivity.map((s) => ({ move: s.key + " = " + toml(s.value), change: 100 * s.objective_change_ratio, limits: s.breaks.length ? "breaks " + s.breaks.join(", ") : "keeps the limits" }));
      const moves = rows.map((s) => s.move), kinds = [...new Set(rows.map((s) => s.limits))].sort((a, b) => (a === "keeps the limits" ? -1 : b === "keeps the limits" ? 1 : 0));
      out.push(figure("How sensitive the choice is", badges, plot({
        height: 90 + 24 * rows.length, marginLeft: labelMargin(moves) + 60, marginRight: 30, color: { domain: kinds, range: ["#0072b2", "#999999", "#e69f00", "#cc79a7"], legend: true },
        x: { label: "change of " + r.objective + " (%)", grid: true }, y: { domain: moves, label: null },
        marks: [Plot.barX(rows, { x: "change", y: "move", fill: "limits", tip: true, insetTop: 2, insetBottom: 2 }), Plot.ruleX([0])],
      }), "One setting moved, the rest as chosen; one seed of the whole job.", ["moved to", "change (%)", "limits"], rows.map((s) => [s.move, s.change.toFixed(2), s.limits])));
    }
    if (r.apply.length || r.not_settable.length) {
      const blocks = r.apply.map((s) => el("details", {}, el("summary", {}, s.system + ": " + s.what), el("pre", {}, el("code", {}, [...s.apply, "", "# the way back", ...s.undo, "", "# check", ...s.check, ...(s.note ? ["", "# " + s.note] : [])].join("\n")))));
      out.push(el("figure", { class: "card" }, el("header", {}, el("h2", {}, "To apply it")), ...blocks, el("ul", {}, ...r.not_settable.map((w) => el("li", {}, w)))));
    }
    return out;
  };

  for (const record of data.records) {
    made = record.name;
    const section = el("section", { class: "record" }, el("h1", {}, record.title));
    if (record.description) section.append(el("p", { class: "lead" }, record.description));
    if (record.source) section.append(el("p", { class: "note" }, "Source: " + record.source));
    const warnings = new Map();
    for (const r of record.runs) for (const w of r.warnings) warnings.set(w, (warnings.get(w) ?? 0) + 1);
    const said = [...warnings].map(([w, n]) => "Warning: " + w + (record.runs.length > 1 ? " (" + n + " of " + record.runs.length + " runs)" : "") + ".");
    if (said.length > 2) section.append(el("details", {}, el("summary", {}, said.length + " warnings: settings that cannot act at some ports"), ...said.map((w) => el("p", { class: "note" }, w))));
    else section.append(...said.map((w) => el("p", { class: "note" }, w)));
    if (record.missing) section.append(el("p", { class: "note" }, record.missing + " runs of this plan are missing from the record."));
    const runs = record.runs;
    if (!runs.length) { page.append(section); continue; }
    const evidence = runs.every((r) => r.evidence === runs[0].evidence) ? runs[0].evidence : "mixed";
    const times = () => [badge("simulated")];
    const joules = () => [badge("simulated", "simulated time"), badge(evidence, evidence + " power")];
    const many = runs.length > MANY;
    const head = el("header", {}, el("h2", {}, "All runs"), ...joules());
    const note = el("figcaption", {}, many ? runs.length + " runs." : "Packet latency. Changes and shares are against the first run, " + runs[0].label + ".");
    if (record.recommendation) section.append(...recommended(record.recommendation, () => [badge("simulated", "simulated time"), badge(evidence, evidence + " power")]));
    const all = many
      ? el("figure", { class: "card" }, head, note, el("details", {}, el("summary", {}, "the numbers"), summary(runs)))
      : el("figure", { class: "card" }, head, summary(runs), note);
    if (!many) section.append(all);
    for (const f of record.figures) if (f.rows.length) section.append(planned(f, f.y.includes("energy") ? joules : times));
    if (many) {
      section.append(all);
    } else {
      section.append(energyByClass(runs, joules));
      if (runs.length > 1) section.append(tradeOff(runs, joules));
      section.append(states(runs, times));
      if (runs.some((r) => r.latency.length)) section.append(latency(runs, times));
      const asked = runs.filter((r) => r.probes);
      if (asked.length) section.append(probed(asked, times));
      if (runs.some((r) => r.drops || r.packets.data.marks)) section.append(packets(runs, times));
      const observed = runs.filter((r) => r.queues);
      if (observed.length) section.append(lengths(observed, times));
      if (observed.some((r) => r.queues.series.length)) section.append(series(observed, times));
    }
    const plan = el("pre", {}, el("code", {}, JSON.stringify(record.plan, null, 1)));
    section.append(el("details", {}, el("summary", {}, "the resolved plan of the first run"), plan));
    section.append(el("footer", {}, "Made by joulepath " + record.version + ". Again: ", el("code", {}, record.command)));
    page.append(section);
  }
  // Tables behind charts belong on paper too.
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => d.setAttribute("open", "")));
  document.documentElement.dataset.drawn = String(document.querySelectorAll("figure.card svg[role=img], figure.card [role=img] svg").length);
})();
