//! A benchmark in the manner of Sdet (Gaede 1981; SPEC 057.sdet): scripts of UNIX commands, each
//! script by a shell of its own in a directory of its own, more and more of them at a time, until
//! no more are done per hour. The peak is the score.
//!
//! Sdet's own scripts are not free. These have the same commands the same number of times, in an
//! order drawn for each script: listing, copying, moving, searching, sorting, counting, comparing,
//! removing. Two scripts are run one after the other at each place.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ioscape_engine::error::{Error, Result};
use ioscape_engine::primitives::Usage;
use ioscape_model::TrialFigure;
use rand::seq::SliceRandom;

use crate::benchmark::{Benchmark, Turn, count, rate};
use crate::meter::Meter;
use crate::site::{Site, chance};

/// Lines of a script; each stands twice in it. All work below the script's own directory.
const COMMANDS: [&str; 14] = [
    "mkdir work$N && touch work$N/empty",
    "cp text copy$N",
    "cp -r tree tree$N",
    "ls -lR . > listing",
    "cat text small >> joined",
    "grep -c step text > found || true",
    "sort text > sorted",
    "wc text small > counted",
    "cmp text small > compared || true",
    "head -n 40 text | tail -n 20 > middle",
    "sed 's/step/pace/' small > edited",
    "cp small moved && mv -f moved renamed",
    "ls tree > /dev/null",
    "rm -rf work* joined copy* tree[0-9]*",
];
/// What they need.
const PROGRAMS: [&str; 16] = [
    "mkdir", "touch", "cp", "ls", "cat", "grep", "sort", "wc", "cmp", "head", "tail", "sed", "mv",
    "rm", "sh", "true",
];
const EACH: usize = 2;
/// Scripts that run one after the other at each place.
const ROUNDS: f64 = 2.0;
const TEXT_LINES: usize = 2000;
const SMALL_LINES: usize = 100;
const TREE_FILES: usize = 8;
/// The next number of scripts at a time is at least one more.
const GROWTH: f64 = 1.5;
/// So many times in a row with less than the peak, and it is over.
const DECLINES: u32 = 2;
const AT_A_TIME_MAX: u32 = 999;

/// The benchmark.
#[derive(Debug, Default)]
pub struct Sdet;

impl Benchmark for Sdet {
    fn room_bytes(&self, site: &Site) -> u64 {
        // A directory holds its texts about five times over at most.
        u64::from(at_a_time_max(site)) * 2 * (1 << 20)
    }

    fn prepare(&mut self, _: &mut Site) -> Result<()> {
        for program in PROGRAMS {
            let found = Command::new("sh")
                .args(["-c", &format!("command -v {program}")])
                .stdout(Stdio::null())
                .status();
            if !found.is_ok_and(|status| status.success()) {
                return Err(Error::Refused(format!(
                    "sdet runs UNIX commands, and `{program}` is not there: install it"
                )));
            }
        }
        Ok(())
    }

    fn trial(&mut self, site: &mut Site, turn: Turn) -> Result<Vec<TrialFigure>> {
        let mut figures = Vec::new();
        let (mut best, mut best_at, mut declines) = (0.0, 0, 0);
        let mut at_a_time = 1;
        let most = at_a_time_max(site);
        while declines < DECLINES && at_a_time <= most {
            let per_hour = level(site, turn, at_a_time)?;
            let name = format!("{at_a_time} at a time");
            figures.push(rate(&name, per_hour, "scripts/h"));
            if per_hour > best {
                (best, best_at, declines) = (per_hour, at_a_time, 0);
            } else {
                declines += 1;
            }
            at_a_time = (f64::from(at_a_time) * GROWTH).ceil().max(f64::from(at_a_time + 1)) as u32;
        }
        figures.insert(0, rate("peak", best, "scripts/h"));
        figures.insert(1, count("peak at", f64::from(best_at), "scripts at a time"));
        Ok(figures)
    }
}

/// Far beyond any peak, and what the room allows.
fn at_a_time_max(site: &Site) -> u32 {
    (site.host.cpus * 16).clamp(16, AT_A_TIME_MAX)
}

/// Scripts per hour with so many at a time.
fn level(site: &mut Site, turn: Turn, at_a_time: u32) -> Result<f64> {
    let rounds = (ROUNDS * site.settings.scale).ceil().max(1.0) as u32;
    let mut scripts = Vec::new();
    for place in 0..at_a_time {
        let directory = site.at(&format!("user{place}"));
        furnish(&directory)?;
        let all: String = (0..rounds)
            .map(|round| script(turn, u64::from(round * AT_A_TIME_MAX + place)))
            .collect();
        scripts.push((directory, all));
    }
    let cpus = site.host.cpus;
    let meter = &mut site.meter;
    let before = Usage::of_children();
    let mut users = Users(Vec::new());
    meter.begin();
    for (directory, script) in &scripts {
        users.0.push(start(directory, script)?);
    }
    users.wait(meter)?;
    let elapsed_s = meter.end();
    // Who waits for a processor does not wait for I/O.
    let at_work = at_a_time.min(cpus.max(1));
    meter.commands(elapsed_s, at_work, &Usage::of_children().since(&before));
    for (directory, _) in &scripts {
        fs::remove_dir_all(directory).map_err(|e| Error::path("remove", directory, e))?;
    }
    Ok(f64::from(at_a_time * rounds) / elapsed_s * 3600.0)
}

/// Shells at work. Whatever happens, none is left running.
struct Users(Vec<Child>);

impl Users {
    fn wait(&mut self, meter: &Meter) -> Result<()> {
        for user in &mut self.0 {
            let status = user.wait().map_err(|error| Error::path("wait for", "sh", error))?;
            meter.check()?;
            if !status.success() {
                let error = std::io::Error::other(format!("a script ended with {status}"));
                return Err(Error::path("run", "sh", error));
            }
        }
        Ok(())
    }
}

impl Drop for Users {
    fn drop(&mut self) {
        for user in &mut self.0 {
            user.kill().ok();
            user.wait().ok();
        }
    }
}

fn start(directory: &Path, script: &str) -> Result<Child> {
    Command::new("sh")
        .args(["-ec", script])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| Error::path("run", "sh", error))
}

/// Each command as often as each other, in an order of its own.
fn script(turn: Turn, number: u64) -> String {
    let mut lines: Vec<&str> =
        COMMANDS.iter().copied().cycle().take(COMMANDS.len() * EACH).collect();
    lines.shuffle(&mut chance(turn.seed, turn.repeat, number));
    let numbered =
        |(place, line): (usize, &&str)| line.replace("$N", &format!("{number}_{place}")) + "\n";
    lines.iter().enumerate().map(numbered).collect()
}

/// What a script finds.
fn furnish(directory: &Path) -> Result<()> {
    let failed = |error| Error::path("create", directory, error);
    let text = |lines: usize| -> String {
        (0..lines).fold(String::new(), |text, k| {
            text + &format!("{} step {}\n", k * 7919 % 10_007, k % 13)
        })
    };
    fs::create_dir_all(directory.join("tree")).map_err(failed)?;
    fs::write(directory.join("text"), text(TEXT_LINES)).map_err(failed)?;
    fs::write(directory.join("small"), text(SMALL_LINES)).map_err(failed)?;
    for number in 0..TREE_FILES {
        let path = directory.join(format!("tree/file{number}"));
        fs::write(path, text(SMALL_LINES)).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::tests::site_with;
    use ioscape_model::SuiteSettings;

    #[test]
    fn scripts_have_the_same_commands_in_orders_of_their_own() {
        let turn = Turn { repeat: 0, seed: 1 };
        let kinds = |number| {
            let mut lines: Vec<String> = script(turn, number)
                .lines()
                .map(|line| line.chars().filter(|c| !c.is_ascii_digit()).collect())
                .collect();
            let order = lines.clone();
            lines.sort();
            (lines, order)
        };
        let ((one, order), (other, other_order)) = (kinds(0), kinds(1));
        assert_eq!(one, other);
        assert_ne!(order, other_order);
        assert_eq!(one.len(), COMMANDS.len() * EACH);
    }

    #[test]
    fn scripts_run_through_and_more_of_them_at_a_time_until_it_is_no_use() {
        let settings = SuiteSettings { scale: 0.5, ..SuiteSettings::default() };
        let (_directory, mut site) = site_with(&settings);
        let mut sdet = Sdet;
        if let Err(error) = sdet.prepare(&mut site) {
            ioscape_test_support::skipped(error);
            return;
        }
        site.renew(true);
        let figures = sdet.trial(&mut site, Turn { repeat: 0, seed: 1 }).unwrap();
        let peak = figures[0].value;
        assert!(figures[2..].iter().all(|figure| figure.value <= peak), "{figures:?}");
        assert!(figures.len() >= 4);
        let share = site.meter.share().unwrap();
        assert!(share.at_most_s.unwrap() <= share.busy_s);
        assert_eq!(fs::read_dir(site.path()).unwrap().count(), 0);
    }
}
