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
    const rows = runs.map((r) => [
      r.label, mark(r, (q) => q.runtime_s, quantity(r.runtime_s, "s")), ...relative([percent(r.runtime_s / first.runtime_s - 1, true)]),
      quantity(r.latency_s_mean, "s"), quantity(r.latency_s_p99, "s"),
      mark(r, (q) => q.energy_j.total, quantity(r.energy_j.total, "J")),
      ...relative([percent(r.energy_j.total / first.energy_j.total), mark(r, (q) => q.energy_delay_js, percent(r.energy_delay_js / first.energy_delay_js))]), r.drops.toLocaleString("en"), r.timeouts.toLocaleString("en"),
    ]);
    const names = ["run", "runtime", ...relative(["change"]), "latency", "99th perc.", "energy", ...relative(["of first", "energy × delay"]), "drops", "timeouts"];
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

  const latency = (runs, badges) => {
    const rows = runs.flatMap((r) => r.latency.map(([s, share]) => ({ run: r.label, latency: s * 1e6, late: 1 - share })).filter((r) => r.late > 0 && r.latency > 0));
    const labels = runs.map((r) => r.label);
    const dashes = ["", "7 3", "2 3", "9 3 2 3", "1 4", "12 4"];
    const chart = plot({
      height: 380, marginLeft: 70, color: { domain: labels, range: colours, legend: true },
      x: { type: "log", label: "packet latency (µs)", grid: true, tickFormat: "~s" }, y: { type: "log", label: "share of packets that take longer", grid: true, tickFormat: "~%" },
      marks: labels.map((label, i) => Plot.lineY(rows.filter((r) => r.run === label), { x: "latency", y: "late", stroke: () => label, strokeDasharray: dashes[i % dashes.length], strokeWidth: 2 })),
    });
    return figure("How long packets take", badges, chart, "From the sender's network card to the receiving host, data packets only. Lower left is faster; the tail is on the right.",
      ["run", "mean", "99th percentile"], runs.map((r) => [r.label, quantity(r.latency_s_mean, "s"), quantity(r.latency_s_p99, "s")]));
  };

  const planned = (f, badges) => {
    const relative = Boolean(f.relative_to);
    const unit = relative ? "of " + f.relative_to.split("=").slice(1).join("=") : unitOf(f.y);
    const label = nameOf(f.y) + (unit ? " (" + unit + ")" : "");
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
    const chart = plot({
      height: 360, marginLeft: 70, marginBottom: 44, color: { domain: seriesNames, range: colours, legend: seriesNames.length > 1 && f.kind === "bar" },
      y: { label: label + (log ? ", logarithmic" : ""), grid: true, ...(log ? { type: "log", tickFormat: "~g" } : {}), ...(f.kind === "bar" ? { zero: true } : {}) }, ...extra, marks,
    });
    const spread = ranged.length ? " Means over runs; thin rules show the smallest and the largest." : "";
    return figure(f.title, badges, chart, (f.note ?? "") + spread, [f.x, f.series ?? "", f.facet ?? "", label].filter(Boolean),
      f.rows.map((r) => [r.x, ...(f.series ? [r.series] : []), ...(f.facet ? [r.facet] : []), r.y.toPrecision(5)]));
  };

  for (const record of data.records) {
    made = record.name;
    const section = el("section", { class: "record" }, el("h1", {}, record.title));
    if (record.description) section.append(el("p", { class: "lead" }, record.description));
    if (record.source) section.append(el("p", { class: "note" }, "Source: " + record.source));
    if (record.missing) section.append(el("p", { class: "note" }, record.missing + " runs of this plan are missing from the record."));
    const runs = record.runs;
    if (!runs.length) { page.append(section); continue; }
    const evidence = runs.every((r) => r.evidence === runs[0].evidence) ? runs[0].evidence : "mixed";
    const times = () => [badge("simulated")];
    const joules = () => [badge("simulated", "simulated time"), badge(evidence, evidence + " power")];
    const many = runs.length > MANY;
    const head = el("header", {}, el("h2", {}, "All runs"), ...joules());
    const note = el("figcaption", {}, many ? runs.length + " runs." : "Packet latency. Changes and shares are against the first run, " + runs[0].label + ".");
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
