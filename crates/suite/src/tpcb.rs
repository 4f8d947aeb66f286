//! TPC-B (Transaction Processing Performance Council 1990) on flat files: debit and credit.
//!
//! A transaction adds an amount to an account, its teller and its branch, and appends to the
//! history; it is committed when its record is in the log and the log is on storage. For each
//! branch there are 10 tellers and 100 000 accounts, records of 100 bytes; history records have
//! 50. Of all transactions 85 % use an account of the teller's own branch, 15 % one of another,
//! where there is another. Amounts have six digits.
//!
//! What is kept of the standard: the transaction, its sizes, the 85/15 rule, durability by the log.
//! What is not: concurrent terminals, isolation between them, and a database that somebody sells.

use std::fs::File;

use ioscape_engine::error::Result;
use ioscape_model::TrialFigure;
use rand::RngExt;

use crate::benchmark::{Benchmark, Turn, count, rate, seconds};
use crate::handle::Handle;
use crate::meter::Meter;
use crate::site::{Site, chance};

const TELLERS: u64 = 10;
const ACCOUNTS: u64 = 100_000;
const RECORD_BYTES: usize = 100;
const HISTORY_BYTES: usize = 50;
/// Transactions on an account of the teller's own branch.
const OWN_BRANCH: f64 = 0.85;
const AMOUNT_MAX: i64 = 999_999;
/// A run lasts so many slices.
const SLICES: f64 = 10.0;
/// Numbers of the files.
const BRANCH: u32 = 0;
const TELLER: u32 = 1;
const ACCOUNT: u32 = 2;
const HISTORY: u32 = 3;
const LOG: u32 = 4;

/// The benchmark.
#[derive(Debug, Default)]
pub struct TpcB {
    tables: Option<Tables>,
}

/// The files.
#[derive(Debug)]
struct Tables {
    branches: u64,
    branch: Handle,
    teller: Handle,
    account: Handle,
    history: Handle,
    log: Handle,
}

/// One transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Transaction {
    branch: u64,
    teller: u64,
    account: u64,
    amount: i64,
}

/// Branches: one for each unit of scale.
fn branches(scale: f64) -> u64 {
    scale.ceil() as u64
}

/// A scale below one has one branch with fewer accounts.
fn accounts_each(scale: f64) -> u64 {
    if scale < 1.0 { ((ACCOUNTS as f64 * scale) as u64).max(100) } else { ACCOUNTS }
}

impl Transaction {
    fn draw(random: &mut impl rand::Rng, branches: u64, accounts: u64) -> Self {
        let teller = random.random_range(0..branches * TELLERS);
        let branch = teller / TELLERS;
        let own = branches == 1 || random.random_bool(OWN_BRANCH);
        let home = if own {
            branch
        } else {
            // Any of the others, all alike.
            (branch + random.random_range(1..branches)) % branches
        };
        let account = home * accounts + random.random_range(0..accounts);
        let amount = random.random_range(-AMOUNT_MAX..=AMOUNT_MAX);
        Self { branch, teller, account, amount }
    }
}

impl Benchmark for TpcB {
    fn room_bytes(&self, site: &Site) -> u64 {
        let scale = site.settings.scale;
        let accounts = branches(scale) * accounts_each(scale) * RECORD_BYTES as u64;
        // History and log of some ten thousand transactions a second.
        accounts + (site.settings.slice_s * SLICES * 4e6) as u64 + (1 << 20)
    }

    fn prepare(&mut self, site: &mut Site) -> Result<()> {
        let scale = site.settings.scale;
        let (branches, accounts) = (branches(scale), branches(scale) * accounts_each(scale));
        let mut table = |name: &str, number: u32, records: u64| {
            let path = site.at(name);
            let meter = &mut site.meter;
            let mut how = File::options();
            how.read(true).write(true).create(true).truncate(true);
            let mut file = Handle::open(meter, &path, number, &how)?;
            fill(meter, &mut file, records)?;
            Ok::<Handle, ioscape_engine::Error>(file)
        };
        self.tables = Some(Tables {
            branches,
            branch: table("branch", BRANCH, branches)?,
            teller: table("teller", TELLER, branches * TELLERS)?,
            account: table("account", ACCOUNT, accounts)?,
            history: table("history", HISTORY, 0)?,
            log: table("log", LOG, 0)?,
        });
        Ok(())
    }

    fn trial(&mut self, site: &mut Site, turn: Turn) -> Result<Vec<TrialFigure>> {
        let tables = self.tables.as_ref().expect("prepared before it is tried");
        let accounts = accounts_each(site.settings.scale);
        let mut random = chance(turn.seed, turn.repeat, 0);
        let lasts_s = site.settings.slice_s * SLICES;
        let meter = &mut site.meter;
        tables.begin_anew(meter)?;
        let clock = meter.clock();
        let mut response_s = Vec::new();
        meter.begin();
        let start_s = clock.now_s();
        let mut now_s = start_s;
        while now_s - start_s < lasts_s {
            let transaction = Transaction::draw(&mut random, tables.branches, accounts);
            tables.commit(meter, transaction, response_s.len() as u64)?;
            let then_s = std::mem::replace(&mut now_s, clock.now_s());
            response_s.push(now_s - then_s);
        }
        let elapsed_s = meter.end();
        response_s.sort_by(f64::total_cmp);
        let made = response_s.len();
        Ok(vec![
            rate("transactions", made as f64 / elapsed_s, "1/s"),
            seconds("response time", response_s.iter().sum::<f64>() / made as f64),
            seconds("response time, p90", response_s[made * 9 / 10]),
            count("made", made as f64, "transactions"),
        ])
    }
}

/// Records with a balance of zero.
fn fill(meter: &mut Meter, file: &mut Handle, records: u64) -> Result<()> {
    const AT_ONCE: u64 = 1000;
    let block = vec![b'x'; RECORD_BYTES * AT_ONCE as usize];
    let mut block = block;
    for record in block.chunks_mut(RECORD_BYTES) {
        record[..8].fill(0);
    }
    let mut left = records;
    while left > 0 {
        let now = left.min(AT_ONCE);
        file.write(meter, &block[..now as usize * RECORD_BYTES])?;
        left -= now;
    }
    file.sync_data(meter)
}

impl Tables {
    /// Each trial begins with an empty history and log.
    fn begin_anew(&self, meter: &mut Meter) -> Result<()> {
        for file in [&self.history, &self.log] {
            let emptied = file.file().set_len(0).and_then(|()| file.file().sync_all());
            emptied.map_err(|error| ioscape_engine::Error::path("empty", file.path(), error))?;
        }
        meter.check()
    }

    fn commit(&self, meter: &mut Meter, transaction: Transaction, number: u64) -> Result<()> {
        let Transaction { branch, teller, account, amount } = transaction;
        let balance = add(meter, &self.account, account, amount)?;
        add(meter, &self.teller, teller, amount)?;
        add(meter, &self.branch, branch, amount)?;
        let mut line = [0; HISTORY_BYTES];
        let fields = [account, teller, branch, amount.cast_unsigned(), balance.cast_unsigned()];
        for (place, field) in line.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let offset = number * HISTORY_BYTES as u64;
        self.history.write_at(meter, &line, offset)?;
        self.log.write_at(meter, &line, offset)?;
        self.log.sync_data(meter)
    }
}

/// Reads a record, adds to its balance, writes it back; gives the balance.
fn add(meter: &mut Meter, file: &Handle, record: u64, amount: i64) -> Result<i64> {
    let mut text = [0; RECORD_BYTES];
    let offset = record * RECORD_BYTES as u64;
    file.read_at(meter, &mut text, offset)?;
    let (field, _) = text.split_first_chunk_mut::<8>().expect("a record is longer than a balance");
    let balance = i64::from_le_bytes(*field) + amount;
    *field = balance.to_le_bytes();
    file.write_at(meter, &text, offset)?;
    Ok(balance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::tests::site_with;
    use ioscape_model::SuiteSettings;

    #[test]
    fn the_rule_of_85_and_15_is_kept_and_amounts_have_six_digits() {
        let (branches, accounts, drawn) = (7, 1000, 100_000);
        let mut random = chance(1, 0, 0);
        let mut own = 0;
        let mut others = [0_u32; 7];
        for _ in 0..drawn {
            let it = Transaction::draw(&mut random, branches, accounts);
            assert_eq!(it.branch, it.teller / TELLERS);
            assert!(it.teller < branches * TELLERS && it.amount.abs() <= AMOUNT_MAX);
            let home = it.account / accounts;
            if home == it.branch {
                own += 1;
            } else {
                others[home as usize] += 1;
            }
        }
        // Three standard deviations: sqrt(0.85 × 0.15 / 100 000) = 0.00113.
        assert!((f64::from(own) / f64::from(drawn) - 0.85).abs() < 0.0034, "{own}");
        assert!(others.iter().all(|&count| (1900..2400).contains(&count)), "{others:?}");
        let only = Transaction::draw(&mut random, 1, accounts);
        assert_eq!(only.branch, 0);
    }

    #[test]
    fn balances_agree_with_the_history_and_each_commit_waits_for_storage() {
        let settings = SuiteSettings { scale: 0.01, slice_s: 0.003, ..SuiteSettings::default() };
        let (_directory, mut site) = site_with(&settings);
        let mut tpcb = TpcB::default();
        tpcb.prepare(&mut site).unwrap();
        site.renew(true);
        let figures = tpcb.trial(&mut site, Turn { repeat: 0, seed: 3 }).unwrap();
        let made = figures[3].value as usize;
        assert!(made >= 1);
        let read = |name: &str| std::fs::read(site.at(name)).unwrap();
        let word = |text: &[u8], at: usize| {
            i64::from_le_bytes(text[at * 8..at * 8 + 8].try_into().unwrap())
        };
        let total = |name: &str| -> i64 {
            read(name).chunks(RECORD_BYTES).map(|record| word(record, 0)).sum()
        };
        let amounts: i64 = read("history").chunks(HISTORY_BYTES).map(|line| word(line, 3)).sum();
        assert_eq!(read("history").len(), made * HISTORY_BYTES);
        assert_eq!(read("history"), read("log"));
        for name in ["account", "teller", "branch"] {
            assert_eq!(total(name), amounts, "{name}");
        }
        let share = site.meter.share().unwrap();
        assert_eq!((share.reads, share.writes), (3 * made as u64, 5 * made as u64));
        let syncs = site.meter.log().iter().filter(|a| a.call == crate::meter::Call::Sync).count();
        assert_eq!(syncs, made);
    }
}
