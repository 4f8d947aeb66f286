// The form around the predictor: a slider and a box per parameter, the answer below, the command
// that says the same. Sliders go along a ladder of round values over what was measured; the boxes
// take any value.
"use strict";
(() => {
  const section = document.getElementById("predictor");
  const part = (name) => section.querySelector(`[data-part="${name}"]`);
  const portable = JSON.parse(document.getElementById("predictor-model").textContent);
  const KEYS = ["unique_bytes", "size_mean", "read_frac", "seq_frac", "process_num"];
  const SIZES = ["unique_bytes", "size_mean"];

  // Fitting the process to its samples takes a moment with many of them: not while the page opens.
  let fitted = null;
  const predictor = () => (fitted ??= new Predictor(portable));

  // A seam for tests and for the curious: what `ioscape predict --json` says of a workload.
  window.ioscapePredict = (work) => predictor().predict(work);

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

  // As `parse_size` reads them: KiB and bare k are binary, kB is decimal.
  function parse_size(text) {
    const found = /^([0-9]*\.?[0-9]+)\s*([kmgtpe]?)(i?b)?$/i.exec(text.trim());
    if (!found) return NaN;
    const [, number, letter, tail] = found;
    const base = tail?.toLowerCase() === "b" && letter ? 1000 : 1024;
    return Math.floor(Number(number) * base ** ("kmgtpe".indexOf(letter.toLowerCase() || "?") + 1));
  }

  const text_of = (key, value) => (SIZES.includes(key) ? size_text(value) : String(value));
  // An empty box is not a zero.
  const value_of = (key, text) => (SIZES.includes(key) ? parse_size(text) : text.trim() === "" ? NaN : Number(text));

  // Eight to the octave, rounded to what can be read; fractions in hundredths.
  function ladder(key) {
    const range = portable.measured.find((range) => range.key === key);
    if (!range) return Array.from({ length: 101 }, (_, i) => i / 100);
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
    return { key, slider, box, ladder: ladder(key) };
  });

  function set_slider({ key, slider, ladder }, value) {
    const distance = (at) => Math.abs(ladder[at] - value);
    let nearest = 0;
    for (let at = 1; at < ladder.length; at += 1) if (distance(at) < distance(nearest)) nearest = at;
    slider.value = nearest;
    slider.setAttribute("aria-valuetext", text_of(key, value));
  }

  function answer() {
    const work = Object.fromEntries(knobs.map(({ key, box }) => [key, value_of(key, box.value)]));
    const wrong = Predictor.check(work);
    part("wrong").textContent = wrong ?? "";
    part("answer").hidden = wrong !== null;
    if (wrong) return;
    const said = predictor().predict(work);
    show("throughput", in_rate, said.throughput_bytes_per_s);
    show("response", in_time, said.response_time_s);
    const [[product], unit] = in_rate(said.product_throughput_bytes_per_s);
    part("product").textContent = `${product} ${unit}`;
    part("region").textContent = said.region || "none";
    part("warnings").hidden = said.in_range;
    part("warnings").textContent = said.in_range ? "" : `Out of range: ${said.warnings.join("; ")}. The interval is wider for it; measure this workload if it matters.`;
    const asked = knobs.map(({ key }) => `${key}=${text_of(key, work[key])}`).join(",");
    part("command").textContent = `${section.dataset.command} -w ${asked}`;
  }

  function show(name, shown, { value, low, high }) {
    const [[middle, from, to], unit] = shown(value, low, high);
    part(name).textContent = `${middle} ${unit}`;
    part(`${name} interval`).textContent = `${from} to ${to} ${unit}`;
  }

  for (const knob of knobs) {
    const { key, slider, box, ladder } = knob;
    slider.max = ladder.length - 1;
    set_slider(knob, value_of(key, box.value));
    slider.addEventListener("input", () => {
      box.value = text_of(key, ladder[slider.value]);
      slider.setAttribute("aria-valuetext", box.value);
      answer();
    });
    box.addEventListener("input", () => {
      const value = value_of(key, box.value);
      if (Number.isFinite(value)) set_slider(knob, value);
      answer();
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
  (window.requestIdleCallback ?? setTimeout)(answer);
})();
