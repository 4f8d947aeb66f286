//! Text of strace, best of `strace -f -ttt -T -y -o FILE`. Its times include what strace itself
//! costs, some 20 to 35 µs for each call.

use std::collections::HashMap;
use std::io;

use super::ledger::Ledger;
use super::lines::Lines;
use super::scan;
use super::source::{Item, Source};
use super::syscalls::arguments::{self, Arguments};
use super::syscalls::table::Table;
use super::syscalls::{Call, Kernel, Outcome};

const S: u64 = 1_000_000_000;
const UNFINISHED: &[u8] = b"<unfinished ...>";
const NO_DURATIONS: &str = "Written without -T: nothing is known of durations.";

/// A file that strace wrote.
pub(crate) struct Strace<'a> {
    name: String,
    lines: Lines<'a>,
    state: State,
}

/// All but the lines, which are borrowed while they are read.
struct State {
    kernel: Kernel,
    table: Table,
    /// Calls whose end is on a later line, by thread: when they began, and their text so far.
    unfinished: HashMap<u32, (u64, Vec<u8>)>,
    /// A call put together from both its lines.
    joined: Vec<u8>,
}

/// A call's thread and times.
#[derive(Clone, Copy, Debug)]
struct Began {
    tid: u32,
    start_ns: u64,
    /// Where its end is on a line of its own.
    end_ns: Option<u64>,
}

/// How a line was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Known,
    PassedOver,
}

impl<'a> Strace<'a> {
    pub(crate) fn new(name: String, lines: Lines<'a>) -> Self {
        let (unfinished, joined) = (HashMap::new(), Vec::new());
        let state = State { kernel: Kernel::new(), table: Table::new(), unfinished, joined };
        Self { name, lines, state }
    }
}

impl Source for Strace<'_> {
    fn next(&mut self, ledger: &mut Ledger) -> io::Result<Option<Item>> {
        loop {
            if let Some(event) = self.state.kernel.pop() {
                return Ok(Some(event.into()));
            }
            let number = self.lines.number + 1;
            let Some(line) = self.lines.line()? else { return Ok(None) };
            if line.is_empty() {
                continue;
            }
            ledger.tally.lines += 1;
            match self.state.line(line, ledger) {
                Some(Line::Known) => {}
                Some(Line::PassedOver) => ledger.tally.passed_over += 1,
                None => ledger.tally.bad(&self.name, number, line),
            }
        }
    }
}

impl State {
    /// `None` where it is no line of strace.
    fn line(&mut self, line: &[u8], ledger: &mut Ledger) -> Option<Line> {
        if line.starts_with(b"strace: ") {
            return Some(Line::PassedOver);
        }
        let (tid, time_ns, rest) = head(line)?;
        if let Some(end) = rest.strip_prefix(b"+++ ") {
            return self.exit(tid, time_ns, end, ledger);
        }
        if rest.starts_with(b"--- ") {
            return Some(Line::PassedOver);
        }
        if let Some(resumed) = rest.strip_prefix(b"<... ") {
            return self.resumed(tid, time_ns, resumed, ledger);
        }
        if let Some(begun) = rest.strip_suffix(UNFINISHED) {
            self.begun(tid, time_ns, begun)?;
            return Some(Line::Known);
        }
        self.call(Began { tid, start_ns: time_ns, end_ns: None }, rest, ledger)
    }

    fn exit(&mut self, tid: u32, time_ns: u64, end: &[u8], ledger: &mut Ledger) -> Option<Line> {
        self.unfinished.remove(&tid);
        let code = if let Some(rest) = end.strip_prefix(b"exited with ") {
            scan::decimal(rest.split(|byte| *byte == b' ').next()?)?
        } else if let Some(rest) = end.strip_prefix(b"killed by ") {
            128 + signal(rest.split(|byte| *byte == b' ').next()?)
        } else {
            return Some(Line::PassedOver);
        };
        self.kernel.exit(tid, time_ns, code, ledger);
        Some(Line::Known)
    }

    fn begun(&mut self, tid: u32, time_ns: u64, begun: &[u8]) -> Option<()> {
        let (name, arguments) = scan::split_at_byte(begun, b'(')?;
        if let Some(sys) = self.table.named(name) {
            let is_thread = memchr::memmem::find(arguments, b"CLONE_THREAD").is_some();
            self.kernel.begin(tid, sys, is_thread);
        }
        let (start_ns, text) = self.unfinished.entry(tid).or_default();
        *start_ns = time_ns;
        text.clear();
        text.extend_from_slice(begun);
        Some(())
    }

    fn resumed(
        &mut self,
        tid: u32,
        time_ns: u64,
        rest: &[u8],
        ledger: &mut Ledger,
    ) -> Option<Line> {
        let at = memchr::memmem::find(rest, b" resumed>")?;
        // It began before strace was attached.
        let begun = self.unfinished.get(&tid).filter(|(_, text)| !text.is_empty());
        let Some((start_ns, begun)) = begun else {
            return Some(Line::PassedOver);
        };
        let name = begun.split(|byte| *byte == b'(').next()?;
        if name != &rest[..at] {
            return None;
        }
        let start_ns = *start_ns;
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        joined.extend_from_slice(begun);
        joined.extend_from_slice(&rest[at + b" resumed>".len()..]);
        let began = Began { tid, start_ns, end_ns: Some(time_ns) };
        let found = self.call(began, &joined, ledger);
        self.joined = joined;
        // The room for its text is kept for the next one; a thread that is gone takes it along.
        if let Some((_, text)) = self.unfinished.get_mut(&tid) {
            text.clear();
        }
        found
    }

    fn call(&mut self, began: Began, text: &[u8], ledger: &mut Ledger) -> Option<Line> {
        let Began { tid, start_ns, end_ns } = began;
        let (name, rest) = scan::split_at_byte(text, b'(')?;
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        if name.is_empty() || !name.iter().all(is_name) {
            return None;
        }
        let Some(sys) = self.table.named(name) else {
            // Mistaken for a call of no interest only if it looks like a call.
            return memchr::memmem::rfind(rest, b") ").map(|_| Line::PassedOver);
        };
        let (arguments, rest) = Arguments::parse(rest)?;
        let (result, duration_ns) = self.end(rest)?;
        let waited_ns = end_ns.map(|end_ns| end_ns.saturating_sub(start_ns));
        if duration_ns.is_none() && waited_ns.is_none() {
            ledger.limit(NO_DURATIONS);
        }
        let Some(result) = result else { return Some(Line::PassedOver) };
        let duration_ns = duration_ns.or(waited_ns);
        let call = Call { tid, start_ns, duration_ns, sys, arguments, result };
        self.kernel.call(&call, ledger)?;
        Some(Line::Known)
    }

    /// ` = 3</tmp/a> <0.000012>`: how it ended and how long it took. A call that never returned
    /// has `?`.
    fn end<'t>(&self, text: &'t [u8]) -> Option<(Option<Outcome<'t>>, Option<u64>)> {
        let text = text.trim_ascii().strip_prefix(b"=")?.trim_ascii();
        let (text, duration_ns) = match duration(text) {
            Some((text, duration_ns)) => (text, Some(duration_ns)),
            None => (text, None),
        };
        if text.first() == Some(&b'?') {
            return Some((None, duration_ns));
        }
        if let Some(named) = arguments::descriptor(text).filter(|named| named.path.is_some()) {
            let path = named.path.filter(|_| !named.is_deleted);
            return Some((Some(Outcome::Done(i64::from(named.number), path)), duration_ns));
        }
        let mut words = scan::Words::in_line(text);
        let value = words.next()?;
        let outcome = match (scan::number(value)?, words.next()) {
            (-1, Some(error)) => Outcome::Failed(self.table.error(error)),
            (value, _) => Outcome::Done(value, None),
        };
        Some((Some(outcome), duration_ns))
    }
}

/// Takes ` <0.000012>` from the end.
fn duration(text: &[u8]) -> Option<(&[u8], u64)> {
    let inner = text.strip_suffix(b">")?;
    let at = memchr::memrchr(b'<', inner)?;
    let duration_ns = scan::nanoseconds(&inner[at + 1..], S)?;
    Some((text[..at].trim_ascii_end(), duration_ns))
}

/// `1234 1700000000.123456 rest`, `[pid 1234] …`, or without a thread, which is then 0.
fn head(line: &[u8]) -> Option<(u32, u64, &[u8])> {
    let (tid, rest) = if let Some(rest) = line.strip_prefix(b"[pid") {
        let (tid, rest) = scan::split_at_byte(rest, b']')?;
        (scan::decimal(tid.trim_ascii())?, rest.trim_ascii_start())
    } else {
        let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
        match line.get(digits) {
            Some(b' ') => (scan::decimal(&line[..digits])?, line[digits..].trim_ascii_start()),
            _ => (0, line),
        }
    };
    let (time, rest) = scan::split_at_byte(rest, b' ')?;
    let tid = u32::try_from(tid).ok()?;
    Some((tid, clock(time)?, rest.trim_ascii()))
}

/// Seconds since 1970 of `-ttt`, or the time of day of `-tt`.
fn clock(text: &[u8]) -> Option<u64> {
    let Some((hours, rest)) = scan::split_at_byte(text, b':') else {
        return scan::nanoseconds(text, S);
    };
    let (minutes, seconds) = scan::split_at_byte(rest, b':')?;
    let whole = scan::decimal(hours)?.checked_mul(60)?.checked_add(scan::decimal(minutes)?)?;
    whole.checked_mul(60 * S)?.checked_add(scan::nanoseconds(seconds, S)?)
}

/// Numbers of the signals that end programs.
fn signal(name: &[u8]) -> u64 {
    match name {
        b"SIGHUP" => 1,
        b"SIGINT" => 2,
        b"SIGQUIT" => 3,
        b"SIGILL" => 4,
        b"SIGABRT" => 6,
        b"SIGBUS" => 7,
        b"SIGKILL" => 9,
        b"SIGSEGV" => 11,
        b"SIGPIPE" => 13,
        b"SIGTERM" => 15,
        _ => 0,
    }
}
