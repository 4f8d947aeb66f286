//! The predictor's place in the page. Whether it predicts rightly is tested where models are
//! fitted: `crates/cli/tests/it/predictor.rs`.

use ioscape_model::{Range, Ranges};
use ioscape_report::{PagePredictor, ReportPage, html};

use crate::browser::five_hundred;
use crate::fixture;

const KEYS: [&str; 5] = ["unique_bytes", "size_mean", "read_frac", "seq_frac", "process_num"];

/// A model of so many samples is about as long as this: a covariance, then eight numbers that differ
/// for each sample. Their bits look like chance.
fn model(samples: u64) -> Vec<u8> {
    let number = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).swap_bytes().to_le_bytes();
    (1..=1500 + 8 * samples).flat_map(number).collect()
}

fn page(record: &ioscape_model::Record, model: &[u8], file: &str) -> String {
    let range = |min, max| Range { min, max };
    let measured = Ranges::of_five(range(128 << 20, 1 << 30), range(4096, 1 << 20), range(1, 16));
    let predictor = Some(PagePredictor { model, measured: &measured, record: file });
    html(&ReportPage { predictor, ..ReportPage::from_record(record) })
}

#[test]
fn every_parameter_has_a_label_a_slider_and_a_box_that_begins_inside_what_was_measured() {
    let page = page(&fixture::full(), b"</script><b>", "my record.jsonl");
    for key in KEYS {
        assert!(page.contains(&format!("<label for=\"predict-{key}\">{key}<small>")), "{key}");
        assert!(page.contains(&format!("aria-label=\"{key}, slider\"")), "{key}");
        assert!(page.contains(&format!("id=\"predict-{key}\"")), "{key}");
    }
    assert!(page.contains("value=\"128MiB\""), "64 MiB is less than was measured");
    assert!(page.contains("ioscape predict &#39;my record.jsonl&#39;"), "a word for the shell");
    assert!(!page.contains("</script><b>"), "a name cannot end the script");
    assert!(page.contains("data-min=\"134217728\" data-max=\"1073741824\""), "what it spans");
}

#[test]
fn a_page_without_a_model_has_no_predictor() {
    assert!(!html(&ReportPage::from_record(&fixture::full())).contains("id=\"predictor\""));
}

#[test]
fn five_hundred_samples_leave_the_page_under_a_mebibyte() {
    let record = five_hundred();
    let with = page(&record, &model(500), "r.jsonl").len();
    let added = with - html(&ReportPage::from_record(&record)).len();
    assert!(with < 1 << 20, "{with} bytes, {added} of them the predictor");
    assert!(added < 180 << 10, "{added} bytes");
}
