//! Entries and exits of system calls, which perf writes on lines of their own.

use std::collections::HashMap;

use super::super::ledger::Ledger;
use super::super::scan;
use super::super::syscalls::arguments::{Arguments, Base};
use super::super::syscalls::table::{Sys, Table};
use super::super::syscalls::{Call, Kernel, Outcome};
use super::Head;
use crate::event::Event;

/// Errors are the last numbers: −4095 to −1.
const ERROR_MIN: i64 = -4095;
const CLONE_THREAD: i64 = 0x1_0000;

/// Calls under way, by thread.
pub(super) struct Calls {
    kernel: Kernel,
    table: Table,
    entered: HashMap<u32, Entered>,
}

#[derive(Default)]
struct Entered {
    start_ns: u64,
    /// `None` once it has ended.
    sys: Option<Sys>,
    is_raw: bool,
    arguments: Vec<u8>,
}

impl Calls {
    pub(super) fn new() -> Self {
        Self { kernel: Kernel::new(), table: Table::new(), entered: HashMap::new() }
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        self.kernel.pop()
    }

    /// Takes a line of a call; `None` where it is none.
    pub(super) fn line(&mut self, head: &Head<'_>, ledger: &mut Ledger) -> Option<()> {
        let (is_entry, sys, text) = if is_raw(head) {
            let is_entry = head.name == b"sys_enter";
            let (number, text) = scan::split_at_byte(head.rest.strip_prefix(b"NR ")?, b' ')?;
            // −1 where it is none.
            let number = u32::try_from(scan::number(number)?).unwrap_or(u32::MAX);
            let text = if is_entry {
                text.strip_prefix(b"(")?.strip_suffix(b")")?
            } else {
                text.strip_prefix(b"= ")?
            };
            (is_entry, self.table.numbered(number), text)
        } else if let Some(name) = head.name.strip_prefix(b"sys_enter_") {
            (true, self.table.named(program_name(name)), head.rest)
        } else {
            let name = head.name.strip_prefix(b"sys_exit_")?;
            (false, self.table.named(program_name(name)), head.rest)
        };
        let Some(sys) = sys else {
            ledger.tally.passed_over += 1;
            return Some(());
        };
        if is_entry {
            self.enter(head, sys, text);
            return Some(());
        }
        self.exit(head, sys, text, ledger)
    }

    fn enter(&mut self, head: &Head<'_>, sys: Sys, text: &[u8]) {
        let is_raw = is_raw(head);
        let entered = self.entered.entry(head.tid).or_default();
        (entered.start_ns, entered.sys, entered.is_raw) = (head.time_ns, Some(sys), is_raw);
        entered.arguments.clear();
        entered.arguments.extend_from_slice(text);
        let flags = split(text, is_raw).number(0).unwrap_or(0);
        self.kernel.begin(head.tid, sys, flags & CLONE_THREAD != 0);
    }

    fn exit(&mut self, head: &Head<'_>, sys: Sys, text: &[u8], ledger: &mut Ledger) -> Option<()> {
        let value = scan::number(text.trim_ascii())?;
        // It was entered before the recording began.
        let Some(entered) = self.entered.get_mut(&head.tid) else { return Some(()) };
        if entered.sys.take() != Some(sys) {
            return Some(());
        }
        let result = match value {
            ERROR_MIN..=-1 => Outcome::Failed(i16::try_from(-value).unwrap_or(i16::MAX)),
            _ => Outcome::Done(value, None),
        };
        let arguments = split(&entered.arguments, entered.is_raw);
        let start_ns = entered.start_ns;
        let duration_ns = Some(head.time_ns.saturating_sub(start_ns));
        let tid = head.tid;
        self.kernel.call(&Call { tid, start_ns, duration_ns, sys, arguments, result }, ledger)
    }
}

fn is_raw(head: &Head<'_>) -> bool {
    head.group == b"raw_syscalls"
}

/// The name in programs of a call that has another one in the kernel.
fn program_name(name: &[u8]) -> &[u8] {
    match name {
        b"newstat" => b"stat",
        b"newfstat" => b"fstat",
        b"newlstat" => b"lstat",
        b"sendfile64" => b"sendfile",
        other => other,
    }
}

/// `fd: 0x00000003, buf: 0x7ffd, count: 0x00020000`, or the numbers alone.
fn split(text: &[u8], is_raw: bool) -> Arguments<'_> {
    let base = if is_raw { Base::Hexadecimal } else { Base::AsMarked };
    let mut arguments = Arguments::in_base(base);
    for part in text.split(|byte| *byte == b',') {
        let at = memchr::memmem::find(part, b": ").map_or(0, |at| at + 2);
        arguments.push(&part[at..]);
    }
    arguments
}
