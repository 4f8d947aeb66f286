// Draws the page's graphs with Observable Plot. The data are the charts of src/chart.rs; words and
// tables are in the markup already, so that nothing is lost without this script.
"use strict";

// What src/html.rs packed into a script element, as a response.
function unpacked(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}

(() => {
  const charts = new Map(JSON.parse(document.getElementById("charts").textContent).map((c) => [c.id, c]));
  const colour = (ink) => `var(--${ink})`;
  const SYMBOLS = { read: "circle", write: "triangle", mixed: "diamond2", fill: "square", canary: "star", plain: "circle", blend: "circle", product: "triangle", gaussian: "square", orthogonal: "diamond2" };
  const DASHES = { write: "7 4", mixed: "2 3.5", canary: "10 3 2 3", fill: "4 2", product: "7 4", gaussian: "2 3.5", orthogonal: "10 3 2 3", plain: "4 4" };
  // Room that the label of a tick needs, in pixels.
  const TICK_ROOM = { bytes: 62, fraction: 42, count: 34, seconds: 62, rate: 110, percent: 110 };

  // Figures on axes: as few digits as tell them apart.
  const digits = (value) => String(Number(value.toPrecision(3)));
  const scaled = (value, base, units) => {
    let unit = 0;
    while (Math.abs(value) >= base * 0.9995 && unit + 1 < units.length) { value /= base; unit += 1; }
    return `${digits(value)} ${units[unit]}`;
  };
  const SHOW = {
    bytes: (v) => scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]),
    rate: (v) => scaled(v, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]),
    fraction: digits,
    deviation: (v) => `${v > 0 ? "+" : v < 0 ? "−" : ""}${digits(Math.abs(v) * 100)} %`,
    percent: (v) => `${digits(v * 100)} %`,
    count: digits,
    seconds: (v) => (v > 0 && v < 1 ? scaled(v * 1e9, 1000, ["ns", "µs", "ms"]) : v >= 7200 ? `${digits(v / 3600)} h` : v >= 60 ? `${digits(v / 60)} min` : `${digits(v)} s`),
    slope: (v) => digits(v).replace("-", "−"),
    ratio: (v) => `× ${digits(v)}`,
  };
  // An axis of names has them at 1, 2, ….
  const show = (axis, v) => axis.names?.[Math.round(v) - 1] ?? SHOW[axis.unit](v);
  const AXIS_NOTE = { slope: "MB/s per MiB" };

  const isLog = (axis) => axis.scale !== "linear";
  // The end of a bar that reaches zero or below cannot stand on a logarithmic axis.
  const usable = (axis, value) => value !== null && (!isLog(axis) || value > 0);

  function marksOf(chart) {
    return chart.series.flatMap((series) =>
      series.marks
        .map(([x, y, low, high, note]) => ({ x, y, low: low ?? y, high: high ?? y, note, ink: series.ink, name: series.name, drawn: series.drawn }))
        .filter((m) => usable(chart.x, m.x) && usable(chart.y, m.y)));
  }

  function yDomain(chart, marks) {
    const rules = chart.rules.filter((r) => r.kind === "level").map((r) => r.at);
    const values = marks.flatMap((m) => [m.y, m.low, m.high]).filter((v) => usable(chart.y, v)).concat(rules);
    let low = Math.min(...values, chart.y.foot ?? Infinity), high = Math.max(...values, chart.y.reach ?? -Infinity);
    if (isLog(chart.y)) {
      // A bar that nearly reaches zero would squeeze everything else.
      low = Math.max(low, Math.min(...marks.map((m) => m.y), chart.y.foot ?? Infinity) / 4);
      const pad = Math.max((high / low) ** 0.07, 1.15);
      return [low / pad, high * pad];
    }
    const pad = (high - low || Math.abs(high) || 1) * 0.06;
    return low >= 0 ? [0, high + pad] : [low - pad, high + pad];
  }

  function xDomain(chart, marks) {
    if (chart.x.names) return [0.5, chart.x.names.length + 0.5];
    const regions = chart.bands.filter((b) => b.kind === "region");
    const edges = [...marks.map((m) => m.x), ...chart.rules.filter((r) => !["level", "diagonal"].includes(r.kind)).map((r) => r.at), ...regions.flatMap((b) => [b.from, b.to])]
      .filter((v) => usable(chart.x, v));
    const low = Math.min(...edges), high = Math.max(...edges);
    if (!isLog(chart.x)) return high > low ? [low, high] : [low - 0.5, high + 0.5];
    return high > low ? [low / (high / low) ** 0.015, high * (high / low) ** 0.015] : [low / 2, high * 2];
  }

  // Powers of two, as many as there is room for.
  function log2Ticks([low, high], room) {
    const first = Math.ceil(Math.log2(low)), last = Math.floor(Math.log2(high));
    const step = Math.max(1, Math.ceil((last - first + 1) / room));
    const ticks = [];
    for (let power = first; power <= last; power += step) ticks.push(2 ** power);
    return ticks;
  }

  // Within one step of a decade an axis is as good as even.
  function evenTicks(low, high) {
    const step = 10 ** Math.floor(Math.log10(high - low));
    const stride = [0.2, 0.5, 1, 2].map((factor) => factor * step).find((s) => (high - low) / s <= 6) ?? 5 * step;
    const ticks = [];
    for (let at = Math.ceil(low / stride); at * stride <= high; at += 1) ticks.push(at * stride);
    return ticks;
  }

  // 1, 2, 5 of each decade while there are few decades, powers of ten otherwise.
  function log10Ticks([low, high], room) {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1)
      for (const digit of [1, 2, 5]) ticks.push(digit * 10 ** power);
    const inside = ticks.filter((t) => t >= low && t <= high);
    if (inside.length < 2) return evenTicks(low, high);
    if (inside.length <= room) return inside;
    const decades = inside.filter((t) => Math.abs(Math.log10(t) - Math.round(Math.log10(t))) < 1e-9);
    return decades.length ? decades : inside.slice(0, 1);
  }

  function timeTicks([low, high], room) {
    const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400];
    // A run that was stopped at once has hardly a whole second to show.
    if (high - low < 2 * steps[0]) return evenTicks(Math.max(low, 0), high);
    const step = steps.find((s) => (high - low) / s <= room) ?? 86400;
    const ticks = [];
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) ticks.push(at);
    return ticks;
  }

  function ticksFor(axis, domain, room) {
    if (axis.names) return axis.names.map((_, i) => i + 1);
    if (axis.scale === "log2") return log2Ticks(domain, room);
    if (axis.scale === "log10") return log10Ticks(domain, room);
    if (axis.unit === "seconds") return timeTicks(domain, room);
    if (axis.unit === "fraction") return [0, 0.25, 0.5, 0.75, 1].filter((t) => t >= domain[0] && t <= domain[1]);
    return undefined;
  }

  const scaleOf = (axis, domain) => ({ type: isLog(axis) ? "log" : "linear", base: axis.scale === "log2" ? 2 : 10, domain });
  const place = (axis, domain, value) => {
    const f = isLog(axis) ? Math.log : (v) => v;
    return (f(value) - f(domain[0])) / (f(domain[1]) - f(domain[0]));
  };

  // Names of upright lines, on as many lines of text as keep them apart.
  function stagger(rules, chart, domain, width) {
    const rows = [];
    return [...rules].sort((a, b) => a.at - b.at).map((rule) => {
      const at = place(chart.x, domain, rule.at) * width;
      const reach = rule.name.length * 6.3 + 12;
      const left = at + reach > width;
      const [from, to] = left ? [at - reach, at] : [at, at + reach];
      let row = rows.findIndex((taken) => taken.every(([a, b]) => to < a || from > b));
      if (row < 0) row = rows.push([]) - 1;
      rows[row].push([from, to]);
      return { ...rule, row, left };
    });
  }

  function bandMarks(chart, domain, width) {
    const clamp = (v) => Math.min(Math.max(v, domain[0]), domain[1]);
    const bands = chart.bands.filter((b) => b.to > b.from).map((b) => ({ ...b, from: clamp(b.from), to: clamp(b.to) }));
    const regions = bands.filter((b) => b.kind === "region");
    const named = regions.map((b) => ({ ...b, mid: isLog(chart.x) ? Math.sqrt(b.from * b.to) : (b.from + b.to) / 2 }))
      .filter((b) => (place(chart.x, domain, b.to) - place(chart.x, domain, b.from)) * width > b.name.length * 6.6);
    const of = (kind) => bands.filter((b) => b.kind === kind);
    return [
      Plot.rect(regions.filter((_, i) => i % 2 === 0), { x1: "from", x2: "to", fill: "var(--region)" }),
      Plot.rect(of("good"), { x1: "from", x2: "to", fill: "var(--good)" }),
      Plot.rect(of("doubt"), { x1: "from", x2: "to", fill: "var(--doubt)" }),
      // On top of the frame, where curves do not run.
      Plot.text(named, { x: "mid", text: "name", frameAnchor: "top", dy: -8, fill: "currentColor", fontSize: 13, fontWeight: 700 }),
    ];
  }

  function ruleMarks(chart, domain, width) {
    const upright = (kind) => chart.rules.filter((r) => r.kind === kind && r.at >= domain[0] && r.at <= domain[1]);
    const names = stagger(upright("capacity"), chart, domain, width);
    const level = chart.rules.filter((r) => r.kind === "level");
    // Names of regions take the row next to the frame.
    const above = chart.bands.some((b) => b.kind === "region" && b.name) ? 1 : 0;
    return {
      rows: above + names.reduce((most, n) => Math.max(most, n.row + 1), 0),
      marks: [
        Plot.ruleX(upright("onset"), { x: "at", stroke: (r) => colour(r.ink), strokeDasharray: "1.5 3.5", strokeWidth: 1.5 }),
        Plot.ruleX(upright("capacity"), { x: "at", stroke: (r) => colour(r.ink), strokeWidth: 1.5 }),
        Plot.ruleX(upright("focal"), { x: "at", stroke: "var(--soft)", strokeDasharray: "1.5 3" }),
        Plot.ruleY(level, { y: "at", stroke: (r) => colour(r.ink), strokeDasharray: "1.5 3" }),
        ...names.map((n) => Plot.text([n], {
          x: "at", text: "name", frameAnchor: "top", dy: -10 - 15 * (n.row + above), dx: n.left ? 2 : -2,
          textAnchor: n.left ? "end" : "start", fill: colour(n.ink), fontSize: 12, fontWeight: 700,
        })),
      ],
    };
  }

  // Upright lines are named above the frame, level ones at their right end.
  function levelNames(chart) {
    return chart.rules.filter((r) => r.kind === "level").map((r) => Plot.text([r], {
      y: "at", text: "name", frameAnchor: "right", dx: -4, dy: -7, textAnchor: "end", fill: colour(r.ink), fontSize: 12,
    }));
  }

  const BANDED = ["ribbon", "curve", "dashed"];
  const LINES_ALONE = ["line", "curve", "dashed"];

  function dataMarks(chart, marks) {
    const whole = marks.filter((m) => m.high > m.low).map((m) => ({ ...m, low: usable(chart.y, m.low) ? m.low : m.y }));
    const bars = whole.filter((m) => !BANDED.includes(m.drawn));
    const of = (series) => (m) => m.name === series.name;
    const banded = chart.series.filter((s) => BANDED.includes(s.drawn));
    const joined = chart.series.filter((s) => s.drawn !== "dots");
    const dots = marks.filter((m) => !LINES_ALONE.includes(m.drawn));
    const crowded = dots.length > 120;
    const focal = chart.rules.filter((r) => r.kind === "focal").map((r) => r.at);
    const ringed = dots.filter((m) => focal.some((at) => Math.abs(m.x - at) <= 0.01 * Math.abs(at)));
    return [
      ...banded.map((s) => Plot.areaY(whole.filter(of(s)), { x: "x", y1: "low", y2: "high", fill: colour(s.ink), fillOpacity: 0.17, clip: true })),
      ...joined.map((s) => Plot.line(marks.filter(of(s)), { x: "x", y: "y", stroke: colour(s.ink), strokeWidth: 1.75, strokeDasharray: s.drawn === "dashed" ? "2 5" : joined.length > 1 ? DASHES[s.ink] : undefined, clip: true })),
      Plot.ruleX(bars, { x: "x", y1: "low", y2: "high", stroke: (m) => colour(m.ink), strokeWidth: 1.5, strokeOpacity: crowded ? 0.45 : 0.9, clip: true }),
      Plot.dot(dots, { x: "x", y: "y", fill: (m) => colour(m.ink), symbol: (m) => SYMBOLS[m.ink], r: crowded ? 2.9 : 3.4, stroke: "var(--paper)", strokeWidth: 0.75 }),
      Plot.dot(ringed, { x: "x", y: "y", stroke: (m) => colour(m.ink), strokeWidth: 1.5, r: 7 }),
    ];
  }

  // What a pointer or the arrow keys can be on: measured marks where there are any, for those say
  // in their notes what the model says.
  function pointable(marks) {
    const measured = marks.filter((m) => !["curve", "dashed"].includes(m.drawn));
    return measured.length ? measured : marks;
  }

  function tipText(chart, m) {
    const note = AXIS_NOTE[chart.y.unit] ? ` ${AXIS_NOTE[chart.y.unit]}` : "";
    const spread = m.high > m.low ? ` (${show(chart.y, m.low)} to ${show(chart.y, m.high)})` : "";
    const lines = [`${show(chart.y, m.y)}${note}${spread}`, `${chart.x.label} ${show(chart.x, m.x)}`];
    if (chart.series.length > 1) lines.unshift(m.name);
    if (m.note) lines.push(...m.note.split(/,\s*/));
    return lines.join("\n");
  }

  // Figures along the vertical axis. On a logarithmic one the library would leave out some.
  function heights(axis, domain) {
    const ticks = ticksFor(axis, domain, 8);
    if (!ticks || !isLog(axis)) return Plot.axisY({ ticks: ticks ?? 4, tickFormat: SHOW[axis.unit], tickSize: 0, tickPadding: 8, label: null });
    return Plot.text(ticks, { y: (t) => t, text: SHOW[axis.unit], frameAnchor: "left", textAnchor: "end", dx: -8 });
  }

  function draw(figure) {
    const chart = charts.get(figure.dataset.chart);
    const container = figure.querySelector(".plot");
    const marks = chart ? marksOf(chart) : [];
    if (!container || !marks.length) return;
    const width = Math.max(container.clientWidth, 240);
    const height = container.clientHeight;
    let x = xDomain(chart, marks), y = yDomain(chart, marks);
    const diagonal = chart.rules.filter((r) => r.kind === "diagonal");
    if (diagonal.length) x = y = [Math.min(x[0], y[0]), Math.max(x[1], y[1])];
    const marginLeft = 66, marginRight = 14;
    const inner = width - marginLeft - marginRight;
    const rules = ruleMarks(chart, x, inner);
    const label = AXIS_NOTE[chart.y.unit] ? `${chart.y.label}, ${AXIS_NOTE[chart.y.unit]}` : chart.y.label;
    const targets = pointable(marks);
    const slanted = chart.x.names?.some((name) => name.length > 8) ?? false;
    const marginTop = 24 + 15 * rules.rows, marginBottom = slanted ? 96 : 40;
    const svg = Plot.plot({
      width, height, marginLeft, marginRight, marginTop, marginBottom,
      style: { background: "none", color: "var(--ink)", fontSize: "12px" },
      x: scaleOf(chart.x, x), y: { ...scaleOf(chart.y, y), axis: null },
      marks: [
        ...bandMarks(chart, x, inner),
        Plot.gridY({ ticks: ticksFor(chart.y, y, 8) ?? 4, stroke: "var(--line)", strokeOpacity: 1 }),
        heights(chart.y, y),
        Plot.axisX({ ticks: ticksFor(chart.x, x, Math.floor(inner / TICK_ROOM[chart.x.unit])), tickFormat: (v) => show(chart.x, v), tickRotate: slanted ? -35 : 0, tickSize: 5, label: slanted ? null : chart.x.label, labelAnchor: "right", labelArrow: "right" }),
        Plot.text([label], { frameAnchor: "top-left", dx: -marginLeft, dy: -marginTop + 5, textAnchor: "start", lineAnchor: "top", fill: "var(--soft)" }),
        ...rules.marks,
        ...(diagonal.length ? levelNames(chart) : []),
        ...diagonal.map((r) => Plot.line([[x[0], x[0]], [x[1], x[1]]], { stroke: colour(r.ink), strokeWidth: 1.25 })),
        ...dataMarks(chart, marks),
        Plot.tip(targets, Plot.pointer({ x: "x", y: "y", title: (m) => tipText(chart, m), maxRadius: 60, fill: "var(--paper)", stroke: "var(--soft)", fontSize: 12, lineHeight: 1.35 })),
      ],
    });
    svg.setAttribute("aria-hidden", "true");
    container.replaceChildren(svg);
    container.onkeydown = (event) => step(event, chart, svg, targets);
    container.onblur = () => svg.dispatchEvent(new PointerEvent("pointerleave"));
  }

  // The arrow keys do what a pointer does: left and right along a curve, up and down from curve to
  // curve; what the tip shows is also spoken.
  const spoken = document.body.appendChild(document.createElement("p"));
  spoken.className = "spoken";
  spoken.setAttribute("aria-live", "polite");
  const reached = new WeakMap();

  function step(event, chart, svg, targets) {
    if (event.key === "Escape") svg.dispatchEvent(new PointerEvent("pointerleave"));
    const at = reached.get(event.currentTarget);
    const next = neighbour(event.key, targets, targets[at] ?? null);
    if (!next) return;
    event.preventDefault();
    reached.set(event.currentTarget, targets.indexOf(next));
    const box = svg.getBoundingClientRect();
    const shrunk = box.width / svg.width.baseVal.value;
    svg.dispatchEvent(new PointerEvent("pointermove", {
      pointerType: "mouse",
      clientX: box.left + svg.scale("x").apply(next.x) * shrunk,
      clientY: box.top + svg.scale("y").apply(next.y) * shrunk,
    }));
    spoken.textContent = tipText(chart, next);
  }

  function neighbour(key, targets, at) {
    if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(key)) return null;
    if (!at) return targets[0];
    const row = targets.filter((m) => m.name === at.name);
    const place = row.indexOf(at);
    if (key === "Home") return row[0];
    if (key === "End") return row[row.length - 1];
    if (key === "ArrowLeft") return row[place - 1] ?? at;
    if (key === "ArrowRight") return row[place + 1] ?? at;
    const names = [...new Set(targets.map((m) => m.name))];
    const name = names[names.indexOf(at.name) + (key === "ArrowDown" ? 1 : -1)];
    const other = targets.filter((m) => m.name === name);
    return other.reduce((best, m) => (Math.abs(m.x - at.x) < Math.abs(best.x - at.x) ? m : best), other[0]) ?? at;
  }

  const figures = [...document.querySelectorAll("figure[data-chart]")].filter((f) => f.querySelector(".plot"));
  const widths = new WeakMap();
  const redraw = (container) => {
    if (container.clientWidth === widths.get(container)) return;
    widths.set(container, container.clientWidth);
    draw(container.closest("figure"));
  };
  // The style sheet gives each graph its height, so that drawing never changes what is observed.
  const observer = new ResizeObserver((entries) => entries.forEach(({ target }) => redraw(target)));
  for (const figure of figures) {
    const container = figure.querySelector(".plot");
    redraw(container);
    observer.observe(container);
  }

  // The fio job of each row, unpacked when the first is asked for.
  let jobs;
  const rows = document.getElementById("jobs")?.textContent ? [...document.querySelectorAll(".reproduce > tbody > tr")] : [];
  rows.forEach((row, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "fio job";
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", async () => {
      const open = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", String(!open));
      if (open) return row.nextElementSibling.remove();
      const cell = document.createElement("td");
      cell.colSpan = row.cells.length;
      const text = cell.appendChild(document.createElement("pre"));
      const below = document.createElement("tr");
      below.append(cell);
      row.after(below);
      jobs ??= unpacked("jobs").json();
      text.textContent = (await jobs)[index];
    });
    row.cells[0].append(" ", button);
  });
})();
