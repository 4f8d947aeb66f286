//! What models make of the points that each plan leaves behind, held against the formula behind them.

use ioscape_analysis::model::blend::Blend;
use ioscape_analysis::model::gaussian::Gaussian;
use ioscape_analysis::model::orthogonal::Orthogonal;
use ioscape_analysis::model::product::Product;
use ioscape_analysis::model::{Model, Training};
use ioscape_analysis::predict::Predictor;
use ioscape_engine::SimSpec;
use ioscape_model::{Access, Hints, Host, Ranges, Workload};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::filling::Filling;
use super::formula::drive;
use super::{BlendPlan, BlendSettings, Global75Plan, OrthogonalPlan, PaperPlan, Plan, training};

type Truth<'a> = &'a dyn Fn(&Workload) -> f64;

/// A plan's points, as models see them.
fn explored(plan: &mut dyn Plan, ranges: Ranges, truth: Truth<'_>, noise: (f64, u64)) -> Training {
    let mut points = Vec::new();
    drive(plan, &mut points, truth, noise);
    let landscape = plan.landscape(&points);
    training(&points, &landscape, (&Host::default(), &Hints::default(), ranges))
}

/// The default plan would go on for ever: so many visits of it.
struct CutShort(BlendPlan, usize);

impl Plan for CutShort {
    fn next(&mut self, seen: &super::Seen<'_>) -> Option<super::Visit> {
        (seen.points.len() < self.1).then(|| self.0.next(seen)).flatten()
    }

    fn landscape(&self, points: &[ioscape_model::Point]) -> super::Landscape {
        self.0.landscape(points)
    }
}

fn blend(ranges: Ranges, seed: u64, visits: usize) -> CutShort {
    let settings = BlendSettings {
        ranges,
        hints: Hints { room_bytes: 1 << 40, ..Hints::default() },
        host: Host::default(),
        read_ahead_bytes: None,
        seed,
        writes_max_bytes: None,
        most_bytes: ranges.unique_bytes.max as f64,
        asked: vec![],
        seeks_borders: true,
        is_short: false,
    };
    CutShort(BlendPlan::new(settings), visits)
}

/// Median of |ln(predicted / true)| over 300 workloads anywhere in the box.
fn median_error(model: &dyn Model, ranges: &Ranges, truth: Truth<'_>) -> f64 {
    let max = ranges.unique_bytes.max as f64;
    let filling = Filling { ranges, largest_bytes: |_| max, seed: 4711 };
    let works = (0..300).map(|index| filling.workload(index)).filter(|work| work.check().is_ok());
    let error = |work: Workload| {
        let guess = model.predict(&work).unwrap();
        assert!(guess.ln_throughput.is_finite() && guess.sd.is_finite(), "{work} {guess:?}");
        (guess.ln_throughput - truth(&work).ln()).abs()
    };
    let mut errors: Vec<f64> = works.map(error).collect();
    errors.sort_by(f64::total_cmp);
    assert!(errors.len() > 250);
    errors[errors.len() / 2]
}

/// One factor per parameter; beyond a border at 256 MB requests are up to 7 times as dear.
fn separable(work: &Workload) -> f64 {
    let unique = 1.0 / (1.0 + 6.0 * (1.0 - 256e6 / work.unique_bytes as f64).max(0.0));
    let size = work.size_mean as f64 / (work.size_mean as f64 + 30e3);
    let processes = f64::from(work.process_num).powf(0.6);
    1e9 * unique * size * processes * (1.0 + work.read_frac) * (2.0 - work.seq_frac)
}

#[test]
fn every_plan_leaves_enough_for_the_product_of_a_separable_law() {
    let ranges = Ranges::usual(2);
    for seed in 0..3 {
        let noise = (0.01 * seed as f64, seed);
        let mut plans: [(&str, Box<dyn Plan>, f64); 4] = [
            ("paper", Box::new(PaperPlan::new(ranges)), 0.02),
            ("global75", Box::new(Global75Plan::new(ranges)), 0.02),
            ("blend", Box::new(blend(ranges, seed, 150)), 0.03),
            // Two or three points a curve.
            ("orthogonal", Box::new(OrthogonalPlan::new(ranges, seed)), 0.3),
        ];
        for (name, plan, bar) in &mut plans {
            let training = explored(plan.as_mut(), ranges, &separable, noise);
            let product = Product::fit(&training).unwrap();
            let error = median_error(&product, &ranges, &separable);
            let bar = *bar + 3.0 * noise.0;
            assert!(error < bar, "{name}, seed {seed}: {error}");
        }
    }
}

#[test]
fn the_gaussian_learns_a_separable_law_from_the_default_plan() {
    let ranges = Ranges::usual(2);
    for seed in 0..3 {
        let training = explored(&mut blend(ranges, seed, 180), ranges, &separable, (0.03, seed));
        let gaussian = Gaussian::fit(&training).unwrap();
        let error = median_error(&gaussian, &ranges, &separable);
        assert!(error < 0.06, "seed {seed}: {error}");
        assert!(Orthogonal::fit(&training).is_none(), "no grid was measured");
    }
}

#[test]
fn the_grid_loses_against_the_product_with_fewer_points_on_every_preset() {
    // Chen and Patterson's Fig. 14: median errors of 10 and 22 % on a SPARCstation.
    for name in SimSpec::names() {
        let spec = SimSpec::preset(name).unwrap();
        let ranges = spec.ranges();
        let law = |work: &Workload| spec.expected_throughput(work);
        for seed in 0..2 {
            let noise = (0.02, seed);
            let paper = explored(&mut PaperPlan::new(ranges), ranges, &law, noise);
            let grid = explored(&mut OrthogonalPlan::new(ranges, seed), ranges, &law, noise);
            assert_eq!(grid.samples.len(), 162);
            assert!(paper.samples.len() < 162);
            let product = median_error(&Product::fit(&paper).unwrap(), &ranges, &law);
            let orthogonal = median_error(&Orthogonal::fit(&grid).unwrap(), &ranges, &law);
            let context = format!("{name}, seed {seed}: {product} {orthogonal}");
            assert!(product < 0.25 && product < orthogonal, "{context}");
        }
    }
}

/// Random workloads with depth 1 to 32 and `fsync_every` 0, 1 or 16.
fn with_extras(ranges: &Ranges, count: u64) -> Vec<Workload> {
    let max = ranges.unique_bytes.max as f64;
    let filling = Filling { ranges, largest_bytes: |_| max, seed: 815 };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(99);
    let mut extra = |work: Workload| Workload {
        depth: 2_f64.powf(rng.random_range(0.0..=5.0)).round() as u32,
        fsync_every: [0, 1, 16][rng.random_range(0..3)],
        ..work
    };
    let works = (0..count).map(|index| extra(filling.workload(index)));
    works.filter(|work| work.check().is_ok()).collect()
}

/// Errors of the logarithm and the share of 90 % intervals that hold, over random workloads.
fn held_against(device: &str, access: Access, visits: usize, seed: u64) -> (f64, f64) {
    let spec = SimSpec::preset(device).unwrap();
    let ranges = Ranges { access, ..spec.ranges() };
    let law = |work: &Workload| spec.expected_throughput(work);
    let training = explored(&mut blend(ranges, seed, visits), ranges, &law, (0.03, seed));
    let share = training.extras.len() as f64 / visits as f64;
    let expected = if access == Access::Direct { 0.25..=0.34 } else { 0.1..=0.17 };
    assert!(expected.contains(&share), "{device}: {share}");
    let predictor = Predictor::fit(training).unwrap();
    let mut errors = Vec::new();
    let mut held = 0.0;
    for work in with_extras(&ranges, 300) {
        let said = predictor.predict("", &work);
        assert!(said.in_range, "{work}: {:?}", said.warnings);
        let rate = said.throughput_bytes_per_s;
        let truth = law(&work);
        errors.push((rate.value / truth).ln().abs());
        held += f64::from(u8::from(rate.low <= truth && truth <= rate.high));
    }
    errors.sort_by(f64::total_cmp);
    (errors[errors.len() / 2], held / errors.len() as f64)
}

/// The median error of a map is below `bar`, and a share of intervals above `held_min` holds. Of maps with seeds 1 to 3 this
/// one is the middle or the worst; another may be off by twice as much.
#[track_caller]
fn check_extras(device: &str, access: Access, bar: f64, held_min: f64) {
    let (median, held) = held_against(device, access, 240, 3);
    assert!(median < bar && held > held_min, "{device} {access:?}: {median:.3} {held:.3}");
}

#[test]
fn requests_in_flight_and_fdatasyncs_are_predicted_on_a_drive() {
    check_extras("nvme", Access::Buffered, 0.14, 0.8);
}

#[test]
fn requests_in_flight_and_fdatasyncs_are_predicted_on_a_disk() {
    check_extras("hdd", Access::Buffered, 0.06, 0.8);
}

#[test]
fn requests_in_flight_are_predicted_on_a_drive_without_the_page_cache() {
    // Errors of 7 % and intervals as narrow.
    check_extras("nvme", Access::Direct, 0.08, 0.75);
}

#[test]
fn requests_in_flight_are_predicted_on_a_volume_without_the_page_cache() {
    check_extras("cloud-volume", Access::Direct, 0.05, 0.8);
}

#[test]
fn what_a_volume_is_sold_by_is_found() {
    let spec = SimSpec::preset("cloud-volume").unwrap();
    let ranges = spec.ranges();
    let law = |work: &Workload| spec.expected_throughput(work);
    for seed in 1..=3 {
        let training = explored(&mut blend(ranges, seed, 160), ranges, &law, (0.03, seed));
        let (model, _) = Blend::fit(&training).unwrap();
        let found = |name: &str| model.parameters()[name].value;
        let ratios = [
            found("storage_requests_per_s") / 3000.0,
            found("storage_read_bytes_per_s") / 125e6,
            found("storage_write_bytes_per_s") / 125e6,
        ];
        assert!(ratios.iter().all(|ratio| (0.85..1.15).contains(ratio)), "seed {seed}: {ratios:?}");
        let said = model.sentences().join(" ");
        assert!(said.contains("Storage serves no more than"), "{said}");
    }
}
