// Predicts as `ioscape predict` does, from the fitted model that stands in the page. A port, to be
// read beside what it follows: functions and figures have the names that they have there.
//   Law               law.rs, law/asked.rs, law/uneven.rs, limits.rs and read_ahead.rs in
//                     crates/analysis/src/model/blend
//   Place, Residual   crates/analysis/src/model/blend/residual.rs
//   GaussianProcess   crates/stats/src/gaussian_process.rs
//   MonotoneCubic     crates/stats/src/monotone.rs
//   Product           crates/analysis/src/model/product.rs
//   Blend             crates/analysis/src/model/blend.rs
//   Predictor         crates/analysis/src/predict.rs and predict/calibration.rs
//   check             crates/model/src/workload.rs
// The data are crates/model/src/portable.rs. A test of the binary holds both against each other.
"use strict";

const Predictor = (() => {
  const { exp, log, log1p, max, min, sqrt } = Math;
  const sum = (values) => values.reduce((total, value) => total + value, 0);

  const PAGE_BYTES = 4096;
  const COMMON = 29;
  const RESOURCE_NORM = 8;
  const PER_CACHE = 5;
  const EVEN_UNTIL = 1 - 1 / Math.E;
  const GROWTH_MIN = 1.1;
  const GROWTH_SOFTNESS = 0.05;
  const HELD_MIN = 0.53;
  const WINDOW_BYTES = 131072;
  const STREAM_BYTES = 1048576;
  const RUNS = [1, 1.1];
  const LONG_RUN = 10;
  const READS_MIN = 0.1;
  const UNEVEN_SCATTER = 0.3;
  const PARTS = ["copy_reads", "copy_writes", "reads", "writes"];

  const pair = (ln_random, ln_ratio) => ({ random: exp(ln_random), sequential: exp(ln_random + ln_ratio) });

  const cache = (at) => ({ bytes: exp(at[0]), fixed_s: pair(at[1], at[2]), bytes_per_s: pair(at[3], at[4]) });

  // From 0 to 1.
  const logistic = (x) => 1 / (1 + exp(-x));

  // Which part of the data touched a cache of this size holds.
  const held = (bytes, work) => min(bytes / work.unique_bytes, 1);

  // Which part of the requests is served just beyond each cache.
  function shares_beyond(caches, work, power) {
    let held_so_far = 0;
    return caches.map((cache, index) => {
      held_so_far = max(held_so_far, held(cache.bytes, work) ** power);
      const next = index + 1 < caches.length ? held(caches[index + 1].bytes, work) ** power : 1;
      return [cache, max(next, held_so_far) - held_so_far];
    }).filter(([, here]) => here > 0);
  }

  function norm(exponent, one, other) {
    const largest = max(one, other);
    if (largest <= 0) return 0;
    const power = (x) => (x / largest) ** exponent;
    return largest * (power(one) + power(other)) ** (1 / exponent);
  }

  // Bytes that storage reads for one that a request misses, at random and in short runs; and in a stream.
  function read_for_one({ read_frac: read, seq_frac: sequential, size_mean: size }, held, eagerness) {
    const in_runs = sequential * (1 - sequential ** LONG_RUN) * (RUNS[0] + RUNS[1] * read);
    const before_cached = held * (1 - 0.1 ** eagerness);
    const short = before_cached + eagerness * in_runs / (1 + size / WINDOW_BYTES);
    const overwritten = -log(max(read, READS_MIN)) / (1 + size / STREAM_BYTES);
    return [exp(short), exp(eagerness * overwritten)];
  }

  class Law {
    constructor({ read_caches, write_caches, parameters: at }) {
      this.read_fixed_s = pair(at[0], at[2]);
      this.write_fixed_s = pair(at[1], at[3]);
      this.read_bytes_per_s = pair(at[4], at[6]);
      this.write_bytes_per_s = pair(at[5], at[7]);
      this.processor_cache_bytes = exp(at[8]);
      this.read_memory_cost = exp(at[9]);
      this.write_memory_cost = exp(at[10]);
      this.processors = exp(at[11]);
      this.sequential_exponent = exp(at[12]);
      this.pieces = exp(at[13]);
      this.waited = logistic(at[14]);
      this.softness = exp(at[15]);
      this.read_parallel = exp(at[16]);
      this.write_parallel = exp(at[17]);
      this.interference = exp(at[18]);
      this.queueing = exp(at[19]);
      this.short_run_cost = exp(at[20]);
      this.run_exponent = exp(at[21]);
      this.overwrite_exponent = exp(at[22]);
      this.sharing = exp(at[23]);
      this.limits = { requests_per_s: exp(at[24]), bytes_per_s: [exp(at[25]), exp(at[26])] };
      this.unevenness = logistic(at[27]);
      this.read_ahead = exp(at[28]);
      const caches = (first, count) => Array.from({ length: count }, (_, index) => cache(at.slice(COMMON + PER_CACHE * (first + index))));
      this.read_caches = caches(0, read_caches);
      this.write_caches = caches(read_caches, write_caches);
    }

    // The processor's part of a request.
    copy_s(work, direction, order) {
      const in_memory = 1 - held(this.processor_cache_bytes, work);
      const copy_s = work.size_mean / this[`${direction}_bytes_per_s`][order];
      return this[`${direction}_fixed_s`][order] + copy_s * (1 + this[`${direction}_memory_cost`] * in_memory);
    }

    // What a read waits for storage, in the mean over hits and misses.
    read_beyond_s(work, order) {
      if (order === "random") return this.miss_mix_s(work, 1, (cache) => [cache.fixed_s.random, cache.bytes_per_s.random]);
      const streaming = work.seq_frac ** this.run_exponent;
      const stream_s = this.miss_mix_s(work, this.sequential_exponent, (cache) => [cache.fixed_s.sequential, cache.bytes_per_s.sequential]);
      const short_s = this.miss_mix_s(work, 1, (cache) => [this.short_run_cost * cache.fixed_s.random, cache.bytes_per_s.random]);
      return streaming * stream_s + (1 - streaming) * short_s;
    }

    miss_mix_s(work, power, cost) {
      const size = work.size_mean;
      const pages = max(size / PAGE_BYTES, 1);
      return sum(shares_beyond(this.read_caches, work, power).map(([cache, here]) => {
        const pieces = 1 + this.pieces * (1 - 1 / pages) * (1 - here);
        const [fixed_s, bytes_per_s] = cost(cache);
        return here * (pieces * fixed_s + size / bytes_per_s);
      }));
    }

    // What a write costs storage, in the mean over those that find their pages dirty and those that do not.
    write_beyond_s(work, order) {
      if (order === "random") return this.write_mix_s(work, order, 1);
      const streaming = work.seq_frac ** this.run_exponent;
      const stream_s = this.write_mix_s(work, order, this.overwrite_exponent);
      return streaming * stream_s + (1 - streaming) * this.write_mix_s(work, order, 1);
    }

    write_mix_s(work, order, power) {
      const cost_s = (cache) => cache.fixed_s[order] + work.size_mean / cache.bytes_per_s[order];
      return sum(shares_beyond(this.write_caches, work, power).map(([cache, here]) => here * cost_s(cache)));
    }

    // Where the time of a request goes.
    times(work) {
      const { read_frac: read, seq_frac: sequential } = work;
      const mixed = (time_s) => sequential * time_s("sequential") + (1 - sequential) * time_s("random");
      return {
        copy_reads: read * mixed((order) => this.copy_s(work, "read", order)),
        copy_writes: (1 - read) * mixed((order) => this.copy_s(work, "write", order)),
        reads: read * mixed((order) => this.read_beyond_s(work, order)),
        writes: (1 - read) * mixed((order) => this.write_beyond_s(work, order)),
        asked: this.asked(work),
      };
    }

    // What storage is asked for by requests that it takes time for, as reads and as writes.
    asked(work) {
      const { read_frac, seq_frac, size_mean } = work;
      const found = (power) => max(0, ...this.read_caches.map((cache) => held(cache.bytes, work) ** power));
      const missed = (power) => (this.read_caches.length ? 1 - found(power) : 0);
      const written = (power) => sum(shares_beyond(this.write_caches, work, power).map(([, share]) => share));
      const streaming = seq_frac * seq_frac ** this.run_exponent;
      const mixed = (one, streamed) => streaming * streamed + (1 - streaming) * one;
      const [one, streamed] = [missed(1), missed(this.sequential_exponent)];
      const [for_one, for_streamed] = read_for_one(work, found(1), this.read_ahead);
      const write = (1 - read_frac) * mixed(written(1), written(this.overwrite_exponent));
      return {
        requests: [read_frac * mixed(one, streamed), write],
        bytes: [read_frac * mixed(for_one * one, for_streamed * streamed) * size_mean, write * size_mean],
      };
    }

    // The least that storage needs for what it is asked for.
    least_s({ requests, bytes }) {
      const { requests_per_s, bytes_per_s } = this.limits;
      return norm(RESOURCE_NORM, sum(requests) / requests_per_s, sum(bytes.map((moved, index) => moved / bytes_per_s[index])));
    }

    // The same times with one part so many times as long.
    scaled(times, part, factor) {
      const direction = PARTS.indexOf(part) - PARTS.indexOf("reads");
      const scaled = (values) => values.map((value, index) => (index === direction ? value * factor : value));
      const asked = { requests: scaled(times.asked.requests), bytes: scaled(times.asked.bytes) };
      return { ...times, asked, [part]: times[part] * factor };
    }

    // What storage spends on a request, by its work or by its limits, seconds.
    busiest_s(times) {
      const beyond = times.reads / this.read_parallel + times.writes / this.write_parallel;
      const reads = times.reads / max(times.reads + times.writes, 2.2250738585072014e-308);
      const working = beyond * (1 + 4 * this.interference * reads * (1 - reads));
      return norm(RESOURCE_NORM, working, this.least_s(times.asked));
    }

    // Seconds per request of one process, queueing included.
    response_s(times, process_num) {
      const copy = times.copy_reads + times.copy_writes;
      const wait = copy + times.reads + this.waited * times.writes;
      const busiest = this.busiest_s(times);
      const alone = this.soft_max(wait, busiest);
      const power = this.queueing;
      const queue = (process_num ** power - 1) * (busiest / alone) ** power;
      const queued = alone * (1 + queue) ** (1 / power);
      const share_s = copy / this.processors;
      const shared = (time_s, count) => norm(this.sharing, time_s, count * share_s);
      return shared(queued, process_num) * alone / shared(alone, 1);
    }

    soft_max(wait, busiest) {
      const scale = this.softness * wait;
      const over = (busiest - wait) / scale;
      return wait + scale * (over > 30 ? over : log1p(exp(over)));
    }

    ln_throughput(work) {
      return this.ln_requests_per_s(this.ways(work), work.process_num) + log(work.size_mean);
    }

    // How the processes of a workload fare: all alike, or some well and the others not.
    ways(work) {
      const even = this.times(work);
      return { even, uneven: this.uneven_among(work, even) };
    }

    uneven_among(work, even) {
      const last = this.read_caches.at(-1);
      const { process_num: count } = work;
      const found = last ? held(last.bytes, work) : 1;
      if (count < 2 || work.read_frac <= 0 || found < HELD_MIN || found >= 1) return null;
      const fast = this.finding(1, work).times(work);
      const missing = 1 - this.response_s(fast, count) / this.response_s(even, count);
      const growth = -log(1 - found) * missing;
      const weight = this.unevenness * logistic((growth - GROWTH_MIN) / GROWTH_SOFTNESS);
      const winners = min(max(count * (found - EVEN_UNTIL) / (1 - EVEN_UNTIL) + 0.5, 1), count - 1);
      const losers = count - winners;
      const slow = this.finding((count * found - winners) / losers, work).times(work);
      return { weight, groups: [[fast, winners], [slow, losers]] };
    }

    // The law where reads find this share of their data in the last cache.
    finding(share, work) {
      const law = Object.assign(Object.create(Law.prototype), this);
      law.read_caches = [...this.read_caches.slice(0, -1), { ...this.read_caches.at(-1), bytes: share * work.unique_bytes }];
      return law;
    }

    // Requests per second, as a logarithm, with one part of the time so many times as long.
    ln_requests_per_s(ways, process_num, part = null, factor = 1) {
      return sum(this.ln_rates(ways, process_num, part, factor));
    }

    // By how much processes that fare unevenly are faster together than if all fared alike.
    apart(work) {
      return this.ln_rates(this.ways(work), work.process_num)[1];
    }

    ln_rates({ even, uneven }, process_num, part = null, factor = 1) {
      const scaled = (times) => (part ? this.scaled(times, part, factor) : times);
      const alike = log(this.rate(scaled(even), process_num));
      if (!uneven) return [alike, 0];
      const together = this.rate_together(uneven.groups.map(([times, count]) => [scaled(times), count]));
      const all_win = this.rate(scaled(uneven.groups[0][0]), process_num);
      return [alike, uneven.weight * max(log(min(together, all_win)) - alike, 0)];
    }

    rate(times, process_num) {
      return process_num / this.response_s(times, process_num);
    }

    // Of processes beside each other, which share storage and processors.
    rate_together(groups) {
      const rates = groups.map(([times, count]) => this.rate(times, count));
      const used = (time_s) => sum(groups.map(([times], index) => rates[index] * time_s(times)));
      const storage = used((times) => this.busiest_s(times));
      const processors = used((times) => (times.copy_reads + times.copy_writes) / this.processors);
      return sum(rates) / max(storage, processors, 1);
    }

    // How the throughput depends on each part of the time: minus d ln X / d ln part.
    elasticities(work) {
      const STEP = 1e-4;
      const ways = this.ways(work);
      const base = this.ln_requests_per_s(ways, work.process_num);
      return PARTS.map((part) => (base - this.ln_requests_per_s(ways, work.process_num, part, 1 + STEP)) / STEP);
    }
  }

  // A workload as the Gaussian process sees it.
  const place = (law, work) => ({
    unique: log(work.unique_bytes),
    features: [log(work.size_mean), work.read_frac, work.seq_frac, log(work.process_num)],
    elasticities: law.elasticities(work),
  });

  // Which of copying, reading and writing back the parts of a request's time are.
  const KIND_OF = [0, 0, 1, 2];

  function covariance(one, other, hyper) {
    const common = sum(one.features.map((at, feature) => ((at - other.features[feature]) / hyper.lengths[feature]) ** 2));
    const correlation = hyper.unique_lengths.map((length) => {
      const apart = (one.unique - other.unique) / length;
      return matern52(sqrt(common + apart * apart));
    });
    return sum(hyper.amplitudes.map((amplitude, part) =>
      one.elasticities[part] * other.elasticities[part] * amplitude ** 2 * correlation[KIND_OF[part]]));
  }

  function matern52(distance) {
    const scaled = sqrt(5) * distance;
    return (1 + scaled + scaled * scaled / 3) * exp(-scaled);
  }

  // The lower root of a matrix that is given by its lower half and what is added to its diagonal;
  // null where that is not positive definite.
  function cholesky(matrix, diagonal) {
    const root = matrix.map((row) => Float64Array.from(row));
    for (let row = 0; row < root.length; row += 1) {
      root[row][row] += diagonal[row];
      for (let column = 0; column <= row; column += 1) {
        let rest = root[row][column];
        for (let k = 0; k < column; k += 1) rest -= root[row][k] * root[column][k];
        if (row === column && !(rest > 0)) return null;
        root[row][column] = row === column ? sqrt(rest) : rest / root[column][column];
      }
    }
    return root;
  }

  // Solves root · x = y.
  function forward(root, y) {
    const x = Float64Array.from(y);
    for (let row = 0; row < x.length; row += 1) {
      for (let k = 0; k < row; k += 1) x[row] -= root[row][k] * x[k];
      x[row] /= root[row][row];
    }
    return x;
  }

  const dot = (a, b) => a.reduce((total, value, index) => total + value * b[index], 0);

  const JITTER_MIN = 1e-12, JITTER_MAX = 1e-6;

  class GaussianProcess {
    constructor(kernel, noise, observed) {
      this.root = GaussianProcess.root_of(kernel, noise);
      this.whitened = forward(this.root, observed);
    }

    // With as little jitter as it takes.
    static root_of(kernel, noise) {
      const scale = sum(kernel.map((row, index) => row[index])) / max(noise.length, 1);
      for (let jitter = 0; jitter <= JITTER_MAX; jitter = max(jitter * 10, JITTER_MIN)) {
        const root = cholesky(kernel, noise.map((variance) => variance + jitter * scale));
        if (root) return root;
      }
      throw new Error("the kernel matrix of the fitted model is not positive definite");
    }

    predict(cross, own) {
      const known = forward(this.root, cross);
      return [dot(known, this.whitened), max(own - dot(known, known), 0)];
    }
  }

  class Residual {
    constructor(process, law) {
      this.hyper = process;
      this.places = process.missed.map((_, index) => place(law, {
        unique_bytes: process.unique_bytes[index], size_mean: process.size_mean[index],
        read_frac: process.read_frac[index], seq_frac: process.seq_frac[index], process_num: process.process_num[index],
      }));
      const kernel = this.places.map((one, row) => this.places.slice(0, row + 1).map((other) => covariance(one, other, process)));
      this.process = new GaussianProcess(kernel, process.noise, process.missed);
    }

    correction(here) {
      const cross = this.places.map((other) => covariance(other, here, this.hyper));
      return this.process.predict(cross, covariance(here, here, this.hyper));
    }
  }

  class Blend {
    constructor({ law, doubt, noise }) {
      this.given = law;
      this.law = new Law(law);
      this.doubt = doubt;
      this.noise_sd = noise;
      this.residual = doubt.process ? new Residual(doubt.process, this.law) : null;
    }

    guess(work) {
      const ln_throughput = this.law.ln_throughput(work);
      if (this.residual) {
        const [correction, variance] = this.residual.correction(place(this.law, work));
        return { ln_throughput: ln_throughput + correction, sd: sqrt(variance) };
      }
      return { ln_throughput, sd: sqrt(this.parameter_variance(work) + this.doubt.law.misfit ** 2) };
    }

    // Variance of the logarithm between two visits.
    noise(work) {
      const uneven = (UNEVEN_SCATTER * this.law.apart(work)) ** 2;
      if (!this.noise_sd) return uneven;
      const of_part = (elasticity, part) => (elasticity * this.noise_sd[KIND_OF[part]]) ** 2;
      return uneven + sum(this.law.elasticities(work).map(of_part));
    }

    // Variance of the logarithm from what the parameters are unsure of.
    parameter_variance(work) {
      const STEP = 1e-4;
      const base = this.law.ln_throughput(work);
      const at = this.given.parameters;
      const slopes = at.map((value, index) => {
        const parameters = at.map((other, place) => (place === index ? value + STEP : other));
        const moved = new Law({ ...this.given, parameters });
        return (moved.ln_throughput(work) - base) / STEP;
      });
      let next = 0, variance = 0;
      slopes.forEach((one, row) => {
        for (let column = 0; column <= row; column += 1, next += 1)
          variance += (column < row ? 2 : 1) * one * slopes[column] * this.doubt.law.covariance[next];
      });
      return max(variance, 0);
    }
  }

  // The height of a monotone piecewise cubic; outside its points it stays at the nearest one.
  function monotone_cubic({ x: xs, y, slope }, x) {
    const last = xs.length - 1;
    const found = xs.findIndex((known) => known >= x);
    const right = found < 0 ? xs.length : found;
    if (right === 0 || right > last) return y[min(right, last)];
    const left = right - 1;
    const width = xs[right] - xs[left];
    const part = (x - xs[left]) / width, rest = 1 - part;
    const from = y[left] * (1 + 2 * part) + slope[left] * width * part;
    const to = y[right] * (1 + 2 * rest) - slope[right] * width * rest;
    return rest * rest * from + part * part * to;
  }

  // Where a workload lies on the five axes.
  const coordinates = (work) =>
    [log(work.unique_bytes), log(work.size_mean), work.read_frac, work.seq_frac, log(work.process_num)];

  function product_ln_throughput({ families }, work) {
    const here = coordinates(work);
    const distance = (family) => Math.abs(family.focal[0] - here[0]);
    const family = families.find(({ from, to }) => from <= work.unique_bytes && work.unique_bytes <= to)
      ?? families.reduce((best, other) => (distance(other) < distance(best) ? other : best));
    return family.curves.reduce((ln_throughput, curve) => {
      const [at, focal] = [here[curve.axis], family.focal[curve.axis]];
      return at === focal ? ln_throughput : ln_throughput + monotone_cubic(curve, at) - monotone_cubic(curve, focal);
    }, family.ln_throughput);
  }

  class Predictor {
    constructor(portable) {
      this.portable = portable;
      this.blend = new Blend(portable);
    }

    predict(work) {
      const { product } = this.portable;
      const guess = this.blend.guess(work);
      const { outside, warnings } = this.outside(work);
      const half_width = this.half_width(guess, this.blend.noise(work)) + this.portable.calibration.wider_outside * outside;
      const value = exp(guess.ln_throughput);
      const throughput = { value, low: value * exp(-half_width), high: value * exp(half_width) };
      const in_flight_bytes = work.size_mean * work.process_num;
      return {
        region: this.region(work),
        in_range: warnings.length === 0,
        throughput_bytes_per_s: throughput,
        response_time_s: {
          value: in_flight_bytes / throughput.value, low: in_flight_bytes / throughput.high, high: in_flight_bytes / throughput.low,
        },
        product_throughput_bytes_per_s: product ? exp(product_ln_throughput(product, work)) : value,
        warnings,
      };
    }

    half_width(guess, noise) {
      const { factor, shared_variance, score_usual, elsewhere_sd, half_width_min } = this.portable.calibration;
      const here = factor * sqrt(guess.sd ** 2 + noise + shared_variance);
      return max(Math.hypot(here, score_usual * elsewhere_sd), half_width_min);
    }

    region(work) {
      const { regions } = this.portable;
      return (regions.find(({ to }) => work.unique_bytes < to) ?? regions.at(-1))?.name ?? "";
    }

    outside(work) {
      let outside = 0;
      const warnings = [];
      for (const { key, min: from, max: to } of this.portable.measured) {
        const over = max(work[key] / to, from / work[key], 1);
        outside += log(over);
        if (over > this.portable.calibration.range_slack) warnings.push(`${key} is outside the ${from} to ${to} that were measured`);
      }
      return { outside, warnings };
    }

    // What is wrong with a workload, as the command line would say it; nothing where it can be.
    static check(work) {
      const ALIGN = 4096, SHARE_REQUESTS_MIN = 8, SIZE_MEAN_MAX = 2 ** 30, PROCESS_NUM_MAX = 4096;
      for (const key of ["read_frac", "seq_frac"])
        if (!(work[key] >= 0 && work[key] <= 1)) return `${key}: a number from 0 to 1`;
      if (!(work.size_mean >= ALIGN && work.size_mean <= SIZE_MEAN_MAX)) return "size_mean: 4 KiB to 1 GiB";
      if (!(Number.isInteger(work.process_num) && work.process_num >= 1 && work.process_num <= PROCESS_NUM_MAX)) return "process_num: 1 to 4096";
      const share = Math.floor(work.unique_bytes / work.process_num / ALIGN) * ALIGN;
      if (!(share >= SHARE_REQUESTS_MIN * work.size_mean))
        return "a share (unique_bytes / process_num) must hold 8 mean requests: raise unique_bytes or lower size_mean or process_num";
      return null;
    }
  }

  return Predictor;
})();
