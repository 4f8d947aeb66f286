//! Sessions one after another: when each begins, what it asks for and at which pace.

use ioscape_model::app::{Counted, Profile, Site};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::deck::{Card, Deck, mixed};
use super::files::{Block, Files};
use super::{Ask, Scaled, Session};

const S: f64 = 1e9;
/// A load that begins within the log begins with the sessions that were on at that time: those that
/// began so many mean sessions before.
const BEFORE: f64 = 6.0;
/// Whole logs of up to so many requests are made at once; in longer ones the end makes no difference.
const PLACED_MAX: f64 = 4e6;

/// Cards for everything that a session draws.
#[derive(Clone, Debug)]
struct Decks {
    /// Sessions of all profiles by their lengths.
    lengths: Deck,
    /// Profile and lengths that each thing of `lengths` stands for.
    is_length: Vec<(usize, Counted)>,
    profiles: Vec<Pace>,
    /// Pages, objects.
    files: [Deck; 2],
}

/// Order and pauses of one profile: page (0) or object (1) at the start and after either, and gaps before either.
#[derive(Clone, Debug)]
struct Pace {
    first: Deck,
    after: [Deck; 2],
    gaps: [Deck; 2],
    gaps_ms: [Vec<Counted>; 2],
}

impl Pace {
    fn new(profile: &Profile, key: u64) -> Self {
        let deck = |counts: &[u64], salt| Deck::new(counts.iter().copied(), mixed(key ^ salt));
        let counts = |list: &[Counted]| list.iter().map(|each| each.count).collect::<Vec<_>>();
        let gaps_ms = [profile.page_gaps_ms.clone(), profile.object_gaps_ms.clone()];
        Self {
            first: deck(&profile.first, 1),
            after: [deck(&profile.after_page, 2), deck(&profile.after_object, 3)],
            gaps: [deck(&counts(&gaps_ms[0]), 4), deck(&counts(&gaps_ms[1]), 5)],
            gaps_ms,
        }
    }
}

/// A stretch of the log: when it is in the load, and how many sessions begin in it.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from_s: f64,
    sessions: f64,
}

/// The sessions of a load, by when they begin.
pub struct Sessions<'a> {
    files: &'a Files,
    decks: Decks,
    chance: Xoshiro256PlusPlus,
    /// Time between requests is divided by this.
    rate: f64,
    number: u64,
    course: Course,
    /// Sessions that began before the load did, the first to go on last.
    early: Vec<Session>,
    held: Option<Session>,
    /// All sessions of a whole log, the last one first.
    placed: Option<Vec<Session>>,
}

/// Order in which sessions begin.
enum Course {
    /// Users who take turns: so many sessions in all, or without an end.
    Users { users: u64, sessions: Option<u64> },
    /// Sessions come as in the log.
    Log {
        stretches: Box<dyn Iterator<Item = Stretch> + Send>,
        length_s: f64,
        due: f64,
        /// Of the stretch that it is: sessions that are still to begin, the time reached, and its end.
        left: (u64, f64, f64),
    },
}

impl<'a> Sessions<'a> {
    pub(super) fn new(site: &Site, scaled: &Scaled, files: &'a Files, seed: u64) -> Self {
        let salted = |salt| mixed(seed ^ mixed(salt));
        let paces = (10..).zip(&site.profiles);
        let profiles = paces.map(|(salt, profile)| Pace::new(profile, salted(salt))).collect();
        let is_length: Vec<(usize, Counted)> = (0..)
            .zip(&site.profiles)
            .flat_map(|(at, profile)| profile.lengths.iter().map(move |length| (at, *length)))
            .collect();
        let deck = |blocks: &[Block], salt| {
            Deck::new(blocks.iter().map(|block| block.requests), salted(salt))
        };
        let decks = Decks {
            lengths: Deck::new(is_length.iter().map(|(_, length)| length.count), salted(1)),
            is_length,
            profiles,
            files: [deck(&files.blocks[0], 2), deck(&files.blocks[1], 3)],
        };
        let mut sessions = Self {
            files,
            decks,
            chance: Xoshiro256PlusPlus::seed_from_u64(salted(4)),
            rate: scaled.rate,
            number: 0,
            course: course(site, scaled),
            early: Vec::new(),
            held: None,
            placed: None,
        };
        let is_whole = scaled.users.is_none() && scaled.for_s.is_none();
        if is_whole && site.expected_requests() * scaled.sessions <= PLACED_MAX {
            sessions.place((site.elapsed_s / scaled.rate * S) as u64);
        }
        sessions
    }

    /// Makes all sessions of a log, and has each begin so early that it ends within the log, as those in
    /// the log did: where a log is short, sessions that go on beyond its end make a difference.
    fn place(&mut self, end_ns: u64) {
        let mut begins: Vec<u64> =
            std::iter::from_fn(|| self.start_s()).map(|start_s| (start_s * S) as u64).collect();
        let lasts =
            |asks: &[Ask]| asks.iter().fold(0, |sum: u64, ask| sum.saturating_add(ask.gap_ns));
        let mut left: Vec<Vec<Ask>> = begins.iter().map(|_| self.asks()).collect();
        left.retain(|asks| !asks.is_empty());
        // The longest first, so that the shortest is taken from the end.
        left.sort_by_cached_key(|asks| std::cmp::Reverse(lasts(asks)));
        begins.truncate(left.len());
        begins.sort_unstable();
        // From the last beginning on: one of those that end in time, or the shortest of all.
        let mut in_time: Vec<Vec<Ask>> = Vec::new();
        let mut placed = Vec::with_capacity(begins.len());
        for (number, start_ns) in begins.into_iter().enumerate().rev() {
            while left.last().is_some_and(|asks| start_ns.saturating_add(lasts(asks)) <= end_ns) {
                in_time.extend(left.pop());
            }
            let asks = if in_time.is_empty() {
                left.pop()
            } else {
                let at = self.chance.random_range(0..in_time.len());
                Some(in_time.swap_remove(at))
            };
            placed.extend(asks.map(|asks| Session { number: number as u64, start_ns, asks }));
        }
        self.placed = Some(placed);
    }

    /// Requests of a session.
    fn asks(&mut self) -> Vec<Ask> {
        let Some(card) = self.decks.lengths.deal() else { return Vec::new() };
        let (profile, length) = self.decks.is_length[card.thing];
        let length = within(length, card);
        let pace = &mut self.decks.profiles[profile];
        let mut before: Option<usize> = None;
        let mut asks = Vec::with_capacity(length as usize);
        for _ in 0..length {
            let deck = before.map_or(&mut pace.first, |before| &mut pace.after[before]);
            let wanted = deck.deal().map_or(0, |card| card.thing);
            // Where the site has no objects, or nothing else, the other kind is asked for.
            let (kind, file) = match self.decks.files[wanted].deal() {
                Some(card) => (wanted, Some(card)),
                None => (1 - wanted, self.decks.files[1 - wanted].deal()),
            };
            let Some(card) = file else { return asks };
            let gap_ns = match before.and_then(|_| pace.gaps[kind].deal()) {
                Some(card) => {
                    let gap_ms = within(pace.gaps_ms[kind][card.thing], card);
                    (gap_ms as f64 * 1e6 / self.rate) as u64
                }
                None => 0,
            };
            let (file, answer) = self.files.blocks[kind][card.thing].ask(card);
            asks.push(Ask { gap_ns, file, answer });
            before = Some(kind);
        }
        asks
    }

    /// When the next session begins, seconds; negative where it had begun before the load did.
    fn start_s(&mut self) -> Option<f64> {
        match &mut self.course {
            Course::Users { sessions, .. } => {
                (sessions.is_none_or(|sessions| self.number < sessions)).then_some(0.0)
            }
            Course::Log { stretches, length_s, due, left } => loop {
                let (count, reached_s, end_s) = left;
                if *count > 0 {
                    // The earliest of so many that are even at random.
                    let share = 1.0 - self.chance.random::<f64>().powf(1.0 / *count as f64);
                    *count -= 1;
                    *reached_s += (*end_s - *reached_s) * share;
                    return Some(*reached_s);
                }
                let stretch = stretches.next()?;
                let after = *due + stretch.sessions;
                let begins = (after.floor() - due.floor()) as u64;
                *due = after;
                *left = (begins, stretch.from_s, stretch.from_s + *length_s);
            },
        }
    }
}

/// One of the values of a bucket, by chance: the same one for each card.
fn within(counted: Counted, card: Card) -> u64 {
    counted.from + mixed(card.number) % (counted.to - counted.from + 1)
}

fn course(site: &Site, scaled: &Scaled) -> Course {
    if let Some(users) = scaled.users {
        let sessions = (site.sessions as f64 * scaled.sessions).round() as u64;
        let is_endless = scaled.for_s.is_some();
        return Course::Users { users: users.into(), sessions: (!is_endless).then_some(sessions) };
    }
    let count = site.starts.len().max(1);
    let evenly_s = site.elapsed_s / count as f64;
    let length_s = if site.stretch_s > 0.0 { site.stretch_s } else { evenly_s } / scaled.rate;
    let wanted = scaled.for_s.map_or(count, |for_s| (for_s / length_s).ceil() as usize);
    let sessions: Vec<f64> =
        site.starts.iter().map(|starts| *starts as f64 * scaled.sessions).collect();
    let first = if wanted < count { busiest(&sessions, wanted) } else { 0 };
    let mean_s = site.sessions_mean * site.elapsed_s / site.sessions.max(1) as f64 / scaled.rate;
    let before = ((BEFORE * mean_s / length_s).ceil() as usize).min(first);
    let stretches = (first - before..first + wanted).map(move |at| Stretch {
        from_s: (at as f64 - first as f64) * length_s,
        sessions: sessions.get(at % count).copied().unwrap_or(0.0),
    });
    Course::Log { stretches: Box::new(stretches), length_s, due: 0.0, left: (0, 0.0, 0.0) }
}

/// First of so many stretches in a row that have most sessions.
fn busiest(sessions: &[f64], wanted: usize) -> usize {
    let mut sum: f64 = sessions[..wanted].iter().sum();
    let (mut best, mut most) = (0, sum);
    for first in 1..=sessions.len() - wanted {
        sum += sessions[first + wanted - 1] - sessions[first - 1];
        if sum > most {
            (best, most) = (first, sum);
        }
    }
    best
}

/// Leaves out what lies so long before the load: when the rest begins, and the rest.
fn rest(mut asks: Vec<Ask>, mut before_ns: u64) -> Option<(u64, Vec<Ask>)> {
    let first = asks.iter().skip(1).position(|ask| {
        let is_later = ask.gap_ns >= before_ns;
        if !is_later {
            before_ns -= ask.gap_ns;
        }
        is_later
    })? + 1;
    let start_ns = asks[first].gap_ns - before_ns;
    asks.drain(..first);
    asks[0].gap_ns = 0;
    Some((start_ns, asks))
}

impl Sessions<'_> {
    /// The next one by its number. It begins with the load, or later, if it began before the load.
    fn make(&mut self) -> Option<(bool, Session)> {
        loop {
            let start_s = self.start_s()?;
            let asks = self.asks();
            if asks.is_empty() {
                return None; // the site has no file
            }
            let number = self.number;
            self.number += 1;
            let is_early = start_s < 0.0;
            if is_early {
                if let Some((start_ns, asks)) = rest(asks, (-start_s * S) as u64) {
                    return Some((is_early, Session { number, start_ns, asks }));
                }
                continue;
            }
            let start_ns = (start_s * S) as u64;
            return Some((is_early, self.under_way(Session { number, start_ns, asks })));
        }
    }

    /// The first sessions of users have begun before the load: else all users would begin at once.
    fn under_way(&mut self, mut session: Session) -> Session {
        let Course::Users { users, .. } = self.course else { return session };
        if session.number < users {
            let first = self.chance.random_range(0..session.asks.len());
            session.asks.drain(..first);
            let gap_ns = std::mem::take(&mut session.asks[0].gap_ns);
            session.start_ns = (gap_ns as f64 * self.chance.random::<f64>()) as u64;
        }
        session
    }
}

impl Iterator for Sessions<'_> {
    type Item = Session;

    fn next(&mut self) -> Option<Session> {
        if let Some(placed) = &mut self.placed {
            return placed.pop();
        }
        while self.held.is_none() {
            match self.make() {
                Some((true, session)) => self.early.push(session),
                Some((false, session)) => {
                    self.early.sort_by_key(|session| std::cmp::Reverse(session.start_ns));
                    self.held = Some(session);
                }
                None => return self.early.pop(),
            }
        }
        let held_ns = self.held.as_ref().map_or(0, |session| session.start_ns);
        match self.early.pop_if(|session| session.start_ns <= held_ns) {
            Some(early) => Some(early),
            None => self.held.take(),
        }
    }
}
