//! `IOStone`, both of them. Their scores have nothing to do with each other: the first one reads
//! and writes places of one file, the second one whole files of many sizes.

pub mod first;
pub mod second;

use ioscape_model::warning::Code;
use ioscape_model::{Severity, TrialFigure, Warning, Words};

use crate::benchmark::{bytes_per_s, rate, seconds};
use crate::site::Site;

/// Bytes moved in all, by either.
const MIB: f64 = 1_048_576.0;

/// The score of a run that took `elapsed_s`: `stones` over the time. The listing of 1987 counts
/// whole seconds and prints nothing where there were none.
fn figures(site: &mut Site, stones: f64, moved_mib: f64, elapsed_s: f64) -> Vec<TrialFigure> {
    let mut figures = Vec::new();
    if site.settings.faithful {
        let whole_s = elapsed_s.floor();
        if whole_s >= 1.0 {
            figures.push(rate("score", (stones / whole_s).floor(), "IOStones/s"));
        } else {
            site.warnings.push(
                Warning::new(
                    Code::NoScore,
                    Words::new(
                        "it took {elapsed_s:.3} s, and the published program counts whole seconds \
                         and prints no score below one",
                    )
                    .figure("elapsed_s", elapsed_s),
                    "leave --faithful out for the same score by a finer clock",
                )
                .with_severity(Severity::Note),
            );
        }
    } else {
        figures.push(rate("score", stones / elapsed_s, "IOStones/s"));
    }
    figures.push(seconds("elapsed", elapsed_s));
    figures.push(bytes_per_s("data rate", moved_mib * MIB / elapsed_s));
    figures
}
