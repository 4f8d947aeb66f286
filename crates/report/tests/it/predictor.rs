//! The predictor's place in the page. Whether it predicts rightly is tested where models are
//! fitted and where there is a browser: `crates/cli/tests/it/predictor.rs`.

use ioscape_model::portable::{
    PortableCalibration, PortableDoubt, PortableLaw, PortablePredictor, PortableProcess,
    PortableRange, PortableRegion,
};
use ioscape_report::{PagePredictor, ReportPage, html};

use crate::browser::five_hundred;
use crate::fixture;

const KEYS: [&str; 5] = ["unique_bytes", "size_mean", "read_frac", "seq_frac", "process_num"];

/// A model of so many samples, with as many digits as real ones have.
fn model(samples: usize) -> PortablePredictor {
    let digits = |value: f64, count: i32| (value * 10_f64.powi(count)).round() / 10_f64.powi(count);
    let column = |scale: f64, count: i32| {
        (1..=samples).map(|i| digits(scale / (i as f64 + 0.1), count)).collect::<Vec<_>>()
    };
    let whole = |scale: f64| column(scale, 0).into_iter().map(|x| x as u64).collect::<Vec<_>>();
    let range = |key: &str, min, max| PortableRange { key: key.to_owned(), min, max };
    PortablePredictor {
        law: PortableLaw { read_caches: 1, write_caches: 1, parameters: vec![-1.0 / 3.0; 38] },
        doubt: PortableDoubt::Process(Box::new(PortableProcess {
            amplitudes: [0.1; 4],
            lengths: [1.0; 4],
            unique_lengths: [1.0; 3],
            unique_bytes: whole(1e9),
            size_mean: whole(1e6),
            read_frac: column(1.0, 3),
            seq_frac: column(1.0, 3),
            process_num: vec![1; samples],
            missed: column(0.1, 8),
            noise: column(0.001, 9),
        })),
        noise: Some([0.03; 3]),
        calibration: PortableCalibration {
            factor: 1.7,
            shared_variance: 0.01,
            score_usual: 1.645,
            elsewhere_sd: 0.08,
            half_width_min: 0.02,
            range_slack: 1.2,
            wider_outside: 0.5,
        },
        measured: vec![
            range("unique_bytes", 128 << 20, 1 << 30),
            range("size_mean", 4096, 1 << 20),
            range("process_num", 1, 16),
        ],
        regions: vec![PortableRegion { name: "</script><b>".to_owned(), to: 1e9 }],
        product: None,
    }
}

fn page(record: &ioscape_model::Record, model: &PortablePredictor, file: &str) -> String {
    let predictor = Some(PagePredictor { model, record: file });
    html(&ReportPage { predictor, ..ReportPage::of(record) })
}

#[test]
fn every_parameter_has_a_label_a_slider_and_a_box_that_begins_inside_what_was_measured() {
    let page = page(&fixture::full(), &model(20), "my record.jsonl");
    for key in KEYS {
        assert!(page.contains(&format!("<label for=\"predict-{key}\">{key}<small>")), "{key}");
        assert!(page.contains(&format!("aria-label=\"{key}, slider\"")), "{key}");
        assert!(page.contains(&format!("id=\"predict-{key}\"")), "{key}");
    }
    assert!(page.contains("value=\"128MiB\""), "64 MiB is less than was measured");
    assert!(page.contains("ioscape predict &#39;my record.jsonl&#39;"), "a word for the shell");
    assert!(!page.contains("</script><b>"), "a name cannot end the script");
}

#[test]
fn a_page_without_a_model_has_no_predictor() {
    assert!(!html(&ReportPage::of(&fixture::full())).contains("id=\"predictor\""));
}

#[test]
fn five_hundred_samples_leave_the_page_under_a_mebibyte() {
    let record = five_hundred();
    let with = page(&record, &model(500), "r.jsonl").len();
    let added = with - html(&ReportPage::of(&record)).len();
    assert!(with < 1 << 20, "{with} bytes, {added} of them the predictor");
    assert!(added < 64 << 10, "{added} bytes");
}
