//! How much of a model comes back: load is made of it and characterised again, without any file.
//!
//! `come_back MODEL.json…` prints for each model how far its five parameters, its syncs and its misses
//! are off in the load made of it.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::fs;

use ioscape_model::App;
use ioscape_trace::caches::mrc::Curve;
use ioscape_trace::caches::{Detail, Looker};
use ioscape_trace::character::Character;
use ioscape_trace::regenerate::{Regenerated, Scale};
use ioscape_trace::{Sink, StreamEntry};

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        let app = App::parse(&fs::read_to_string(&path)?)?;
        let load = Regenerated::new(app.clone(), Scale::default(), 1)?;
        let mut character = Character::new(load.info().layer);
        let mut looker = Looker::new(load.files(), load.info(), &[], Detail::Exact);
        load.files().iter().try_for_each(|file| character.file(file.clone()))?;
        let stream = |stream: &StreamEntry| character.stream(stream.clone());
        load.streams().iter().try_for_each(stream)?;
        for event in load.events() {
            character.event(&event)?;
            looker.see(&event);
        }
        character.finish(load.info())?;
        let made = character.app().whole;
        let look = looker.finish();
        let curve = look.curve.ok_or("no curve")?;
        let (was, now) = (&app.whole.five, &made.five);
        let off = |was: f64, now: f64| 100.0 * (now / was.max(1e-9) - 1.0);
        println!(
            "{path}: unique {:+.2} %, size {:+.2} %, reads {:+.2}, sequential {:+.2}, streams {} for {}, \
             requests {} of {}, syncs {} of {}",
            off(was.unique_bytes as f64, now.unique_bytes as f64),
            off(was.size_mean, now.size_mean),
            100.0 * (now.read_frac - was.read_frac),
            100.0 * (now.seq_frac - was.seq_frac),
            now.process_num,
            was.process_num,
            made.requests,
            app.whole.requests,
            made.syncs.count,
            app.whole.syncs.count,
        );
        if let Some(caches) = &app.caches {
            let truth = Curve::from_model(caches);
            let off = |pages: u64| curve.miss_ratio(pages) - truth.miss_ratio(pages);
            let sizes = truth.sizes(100);
            let worst = sizes.into_iter().max_by(|a, b| off(*a).abs().total_cmp(&off(*b).abs()));
            let worst = worst.unwrap_or(0);
            println!("    misses off by {:+.4} at {worst} of {} pages", off(worst), caches.pages);
        }
    }
    Ok(())
}
