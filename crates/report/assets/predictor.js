// The form around the predictor, which is crates/page-predictor: a slider and a box per parameter,
// the answer below, the command that says the same. Sliders go along a ladder of round values over
// what was measured; the boxes take any value. Nothing is predicted, parsed or checked here.
"use strict";
(() => {
  const section = document.getElementById("predictor");
  const part = (name) => section.querySelector(`[data-part="${name}"]`);
  const KEYS = ["unique_bytes", "size_mean", "read_frac", "seq_frac", "process_num"];
  const SIZES = ["unique_bytes", "size_mean"];

  // Texts are handed over in the module's memory, as crates/page-predictor/src/exports.rs says.
  async function start() {
    const [module, model] = await Promise.all(["predictor-module", "predictor-model"].map((id) => unpacked(id).arrayBuffer()));
    const { memory, ...exports } = (await WebAssembly.instantiate(module)).instance.exports;
    const ask = (what, input) => {
      const at = exports.ioscape_input(input.byteLength);
      new Uint8Array(memory.buffer, at, input.byteLength).set(new Uint8Array(input));
      const length = what();
      return new TextDecoder().decode(new Uint8Array(memory.buffer, exports.ioscape_output(), length));
    };
    const wrong = ask(exports.ioscape_load, model);
    if (wrong) throw new Error(wrong);
    const lines = (work) => Object.entries(work).map((pair) => pair.join("=")).join("\n");
    return (work) => JSON.parse(ask(exports.ioscape_predict, new TextEncoder().encode(lines(work))));
  }

  // As crates/model/src/units.rs shows figures.
  const three_digits = (v) => v.toFixed(Math.abs(v) >= 99.95 ? 0 : Math.abs(v) >= 9.995 ? 1 : 2);
  function in_unit(figures, base, units) {
    let unit = 0, scale = 1;
    while (figures[0] / scale >= base * 0.9995 && unit + 1 < units.length) { scale *= base; unit += 1; }
    return [figures.map((v) => three_digits(v / scale)), units[unit]];
  }
  const in_rate = (...figures) => in_unit(figures, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]);
  const in_time = (...figures) => in_unit(figures.map((s) => s * 1e9), 1000, ["ns", "µs", "ms", "s"]);

  const UNITS = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
  function size_text(bytes) {
    const unit = UNITS.find(([, base]) => bytes % base === 0);
    return unit ? `${bytes / unit[1]}${unit[0]}` : String(bytes);
  }

  const text_of = (key, value) => (SIZES.includes(key) ? size_text(value) : String(value));

  // Eight to the octave, rounded to what can be read; fractions in hundredths.
  function ladder(key, { min, max }) {
    if (!max) return Array.from({ length: 101 }, (_, i) => i / 100);
    const range = { min: Number(min), max: Number(max) };
    const steps = 8 * Math.log2(range.max / range.min);
    const values = Array.from({ length: Math.ceil(steps) }, (_, i) => rounded(key, range.min * 2 ** (i / 8)));
    const inside = values.filter((value) => value > range.min && value < range.max);
    return [...new Set([range.min, ...inside, range.max])];
  }

  function rounded(key, value) {
    const grain = SIZES.includes(key) ? Math.max(2 ** Math.floor(Math.log2(value) - 4), 4096) : 1;
    return Math.round(value / grain) * grain;
  }

  const knobs = KEYS.map((key) => {
    const [slider, box] = ["slider", "box"].map((kind) => part(`${kind} ${key}`));
    return { key, slider, box, ladder: ladder(key, slider.dataset) };
  });

  function set_slider({ slider, box, ladder }, value) {
    const distance = (at) => Math.abs(ladder[at] - value);
    let nearest = 0;
    for (let at = 1; at < ladder.length; at += 1) if (distance(at) < distance(nearest)) nearest = at;
    slider.value = nearest;
    slider.setAttribute("aria-valuetext", box.value);
  }

  // What is typed is answered as soon as the module is there. Gives the workload, where it can be.
  let predict = null;
  function answer() {
    if (!predict) return null;
    const { prediction, wrong } = predict(Object.fromEntries(knobs.map(({ key, box }) => [key, box.value])));
    part("wrong").textContent = wrong ?? "";
    part("answer").hidden = !prediction;
    if (!prediction) return null;
    show("throughput", in_rate, prediction.throughput_bytes_per_s);
    show("response", in_time, prediction.response_time_s);
    const [[product], unit] = in_rate(prediction.product_throughput_bytes_per_s);
    part("product").textContent = `${product} ${unit}`;
    part("region").textContent = prediction.region || "none";
    const warnings = prediction.warnings.map(({ text }) => text);
    part("warnings").hidden = prediction.in_range;
    part("warnings").textContent = prediction.in_range ? "" : `Out of range: ${warnings.join("; ")}. The interval is wider for it; measure this workload if it matters.`;
    const { workload } = prediction;
    const asked = knobs.map(({ key }) => `${key}=${text_of(key, workload[key])}`).join(",");
    part("command").textContent = `${section.dataset.command} -w ${asked}`;
    return workload;
  }

  function show(name, shown, { value, low, high }) {
    const [[middle, from, to], unit] = shown(value, low, high);
    part(name).textContent = `${middle} ${unit}`;
    part(`${name} interval`).textContent = `${from} to ${to} ${unit}`;
  }

  for (const knob of knobs) {
    const { key, slider, box, ladder } = knob;
    slider.max = ladder.length - 1;
    slider.addEventListener("input", () => {
      box.value = text_of(key, ladder[slider.value]);
      slider.setAttribute("aria-valuetext", box.value);
      answer();
    });
    box.addEventListener("input", () => {
      const workload = answer();
      if (workload) set_slider(knob, workload[key]);
    });
  }

  section.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  part("copy").addEventListener("click", async ({ target }) => {
    const range = document.createRange();
    range.selectNodeContents(part("command"));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    // A page opened from disk may not use the clipboard everywhere: then the line is at least selected.
    try {
      await navigator.clipboard.writeText(range.toString());
      target.textContent = "copied";
    } catch {
      target.textContent = "selected";
    }
    setTimeout(() => (target.textContent = "copy"), 2000);
  });
  section.hidden = false;
  // Not while the page opens: with many samples the model takes a moment to load.
  const started = new Promise((resolve) => addEventListener("load", () => resolve(start())));
  // A seam for tests and for the curious: what `ioscape predict --json` says of a workload.
  window.ioscapePredict = async (work) => (await started)(work);
  started.then(
    (loaded) => {
      predict = loaded;
      const workload = answer();
      if (workload) for (const knob of knobs) set_slider(knob, workload[knob.key]);
    },
    (error) => (part("wrong").textContent = `the predictor does not run in this browser: ${error.message}`),
  );
})();
