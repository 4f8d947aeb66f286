//! What the programs have in common: finding the thread's slot, reading the kernel's structures,
//! making room in the ring.
//!
//! In all programs R6 is first the context and then the record, R7 the slot of the thread.

use super::asm::Register::{self, R0, R1, R2, R3, R4, R6, R7, R9, R10};
use super::asm::{Assembler, Do, Helper, If, Instruction, Label, Width};
use super::layout::Layout;
use super::record::{Kind, at};
use super::system::Map;

/// Where in a slot, the value of `Maps::threads`, what lies; bytes.
pub(crate) mod slot {
    /// When the call in progress began.
    pub(crate) const START: i16 = 0;
    /// Its number.
    pub(crate) const NUMBER: i16 = 8;
    /// What to do with it, 0 where none is in progress that concerns files.
    pub(crate) const WANTED: i16 = 12;
    /// Registers with its arguments, `REGISTER_BYTES` of them.
    pub(crate) const REGISTERS: i16 = 16;
    /// When the call before ended.
    pub(crate) const LAST_END: i16 = 80;
    /// Time since then that the thread was on no processor.
    pub(crate) const OFF: i16 = 88;
    /// Since when it is on none, 0 while it is.
    pub(crate) const OFF_SINCE: i16 = 96;
    /// Processor time between the call before and the one in progress.
    pub(crate) const CPU_GAP: i16 = 104;
    /// Time on no processor in all.
    pub(crate) const OFF_TOTAL: i16 = 112;
    /// When the thread began.
    pub(crate) const BEGAN: i16 = 120;
    /// Length of a slot.
    pub(crate) const BYTES: i16 = 128;
}

/// Bytes of `struct pt_regs` that hold the arguments, as one piece.
pub(crate) const REGISTER_BYTES: i32 = 64;
/// Where that piece begins, and where in it the six arguments lie: r10, r9, r8, rax, rcx, rdx, rsi,
/// rdi in this order.
#[cfg(target_arch = "x86_64")]
pub(crate) const REGISTERS: (i32, [i16; 6]) = (56, [56, 48, 40, 0, 16, 8]);
/// Where that piece begins, and where in it the six arguments lie: x0 to x7.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const REGISTERS: (i32, [i16; 6]) = (0, [0, 8, 16, 24, 32, 40]);

/// Places in the stack.
pub(crate) mod stack {
    /// The number of this thread.
    pub(crate) const THREAD: i16 = -4;
    /// A key of another map, or another thread.
    pub(crate) const KEY: i16 = -8;
    /// What was read just now.
    pub(crate) const READ: i16 = -16;
    /// A key of 8 bytes.
    pub(crate) const LONG_KEY: i16 = -24;
    /// A slot, or another value that goes into a map.
    pub(crate) const VALUE: i16 = -24 - super::slot::BYTES;
}

/// No need to wake the reader: it looks by itself.
pub(crate) const NO_WAKE: i32 = 1;
/// Counters of `Maps::counts`.
pub(crate) const LOST: i32 = 0;
/// Threads for which there was no slot.
pub(crate) const UNFOLLOWED: i32 = 1;

/// Maps that the programs share.
#[derive(Debug)]
pub(crate) struct Maps {
    /// Slots by thread: those that are recorded.
    pub(crate) threads: Map,
    /// What to do with a call, by its number.
    pub(crate) wanted: Map,
    /// Room for one long record.
    pub(crate) scratch: Map,
    /// Records.
    pub(crate) ring: Map,
    /// Counters.
    pub(crate) counts: Map,
    /// Requests of `io_uring` in flight.
    pub(crate) requests: Map,
}

/// A program that is being written.
pub(crate) struct Routine<'a> {
    pub(crate) asm: Assembler,
    pub(crate) maps: &'a Maps,
    pub(crate) layout: &'a Layout,
    /// Where a program ends that has nothing to do.
    pub(crate) end: Label,
    /// Where one ends that found no room; only where it asks for some.
    lost: Option<Label>,
}

impl<'a> Routine<'a> {
    pub(crate) fn new(maps: &'a Maps, layout: &'a Layout) -> Self {
        let mut asm = Assembler::default();
        let end = asm.label();
        asm.copy(R6, R1);
        Self { asm, maps, layout, end, lost: None }
    }

    /// The program, with its ends. The verifier wants no end that nobody reaches.
    pub(crate) fn finish(mut self) -> Vec<Instruction> {
        if let Some(lost) = self.lost {
            self.asm.jump(self.end);
            self.asm.bind(lost);
            self.count(LOST);
        }
        self.asm.bind(self.end);
        self.asm.set(R0, 0);
        self.asm.exit();
        self.asm.finish()
    }

    fn lost(&mut self) -> Label {
        *self.lost.get_or_insert_with(|| self.asm.label())
    }

    /// Adds one to a counter; R0 to R5 are lost.
    pub(crate) fn count(&mut self, counter: i32) {
        let done = self.asm.label();
        self.asm.store_number(Width::Word, R10, stack::KEY, counter);
        self.look_up(&self.maps.counts, stack::KEY);
        self.asm.jump_if(R0, If::Equal, 0, done);
        self.asm.set(R1, 1);
        self.asm.add_in_memory(R0, 0, R1);
        self.asm.bind(done);
    }

    /// R0 = the element under the key in the stack, or 0.
    pub(crate) fn look_up(&mut self, map: &Map, key: i16) {
        self.asm.map(R1, map.descriptor());
        self.asm.address(R2, R10, key);
        self.asm.call(Helper::MapLookup);
    }

    /// Stores what lies in the stack.
    pub(crate) fn update(&mut self, map: &Map, key: i16, value: i16) {
        self.asm.map(R1, map.descriptor());
        self.asm.address(R2, R10, key);
        self.asm.address(R3, R10, value);
        self.asm.set(R4, 0);
        self.asm.call(Helper::MapUpdate);
    }

    /// Removes the element under the key in the stack.
    pub(crate) fn remove(&mut self, map: &Map, key: i16) {
        self.asm.map(R1, map.descriptor());
        self.asm.address(R2, R10, key);
        self.asm.call(Helper::MapDelete);
    }

    /// R7 = the slot of this thread; goes to the label where it has none.
    pub(crate) fn find_slot(&mut self, otherwise: Label) {
        self.asm.call(Helper::CurrentIds);
        self.asm.store(Width::Word, R10, stack::THREAD, R0);
        self.look_up(&self.maps.threads, stack::THREAD);
        self.asm.jump_if(R0, If::Equal, 0, otherwise);
        self.asm.copy(R7, R0);
    }

    /// Goes to the end where neither this thread nor the first of its process is recorded: threads
    /// that the kernel makes for `io_uring` are announced by no tracepoint.
    pub(crate) fn require_process(&mut self) {
        let found = self.asm.label();
        self.asm.call(Helper::CurrentIds);
        self.asm.store(Width::Word, R10, stack::THREAD, R0);
        self.asm.calculate_with(Do::ShiftRight, R0, 32);
        self.asm.store(Width::Word, R10, stack::KEY, R0);
        self.look_up(&self.maps.threads, stack::THREAD);
        self.asm.jump_if(R0, If::NotEqual, 0, found);
        self.look_up(&self.maps.threads, stack::KEY);
        self.asm.jump_if(R0, If::Equal, 0, self.end);
        self.asm.load(Width::Word, R1, R10, stack::KEY);
        self.asm.store(Width::Word, R10, stack::THREAD, R1);
        self.asm.bind(found);
    }

    /// Copies from the kernel: `*(base + offset)`, `bytes` long, to `*(target + to)`. `base` may not
    /// be R1 or R2.
    pub(crate) fn read(
        &mut self,
        (target, to): (Register, i16),
        bytes: i32,
        (base, offset): (Register, i32),
    ) {
        self.asm.copy(R3, base);
        self.asm.calculate_with(Do::Add, R3, offset);
        self.asm.address(R1, target, to);
        self.asm.set(R2, bytes);
        self.asm.call(Helper::ReadKernel);
    }

    /// `register = *(register + offset)`, in the kernel.
    pub(crate) fn follow(&mut self, register: Register, offset: i32) {
        self.read((R10, stack::READ), 8, (register, offset));
        self.asm.load(Width::Double, register, R10, stack::READ);
    }

    /// Fills in which file the `struct inode *` in R9 is; R6 is the record. R9 is lost.
    pub(crate) fn tell_inode(&mut self) {
        let inode = self.layout.inode;
        self.read((R6, at::INODE), 8, (R9, inode.number));
        self.asm.store_number(Width::Word, R6, at::MODE, 0);
        self.read((R6, at::MODE), 2, (R9, inode.mode));
        self.read((R6, at::SIZE), 8, (R9, inode.size));
        self.follow(R9, inode.super_block);
        self.read((R6, at::DEVICE), 4, (R9, inode.device));
    }

    /// Fills in which file the `struct file *` in R9 is; R6 is the record. R9 is lost.
    pub(crate) fn tell_file(&mut self) {
        let file = self.layout.file;
        self.read((R6, at::FILE_MODE), 4, (R9, file.mode));
        self.read((R6, at::FILE_FLAGS), 4, (R9, file.flags));
        self.follow(R9, file.inode);
        let (mapping, cached) = self.layout.inode.cached;
        self.read((R6, at::CACHED), 8, (R9, mapping));
        self.asm.load(Width::Double, R3, R6, at::CACHED);
        self.read((R6, at::CACHED), 8, (R3, cached));
        self.tell_inode();
    }

    /// R0 = room for a record of this many bytes in the ring; where there is none it is counted as
    /// lost and the program ends.
    pub(crate) fn reserve(&mut self, bytes: i32) {
        self.asm.map(R1, self.maps.ring.descriptor());
        self.asm.set(R2, bytes);
        self.asm.set(R3, 0);
        self.asm.call(Helper::RingReserve);
        let lost = self.lost();
        self.asm.jump_if(R0, If::Equal, 0, lost);
    }

    /// Hands over the record in this register.
    pub(crate) fn submit(&mut self, record: Register) {
        self.asm.copy(R1, record);
        self.asm.set(R2, NO_WAKE);
        self.asm.call(Helper::RingSubmit);
    }

    /// Copies `R3` bytes at R2 into the ring.
    pub(crate) fn output(&mut self) {
        self.asm.map(R1, self.maps.ring.descriptor());
        self.asm.set(R4, NO_WAKE);
        self.asm.call(Helper::RingOutput);
        let lost = self.lost();
        self.asm.jump_if(R0, If::LessSigned, 0, lost);
    }

    /// Begins a record in R0 that is about no call: kind, thread, and the time in `time`.
    pub(crate) fn head(&mut self, record: Register, kind: Kind, time: Register) {
        self.asm.store_number(Width::Word, record, at::KIND, kind as i32);
        self.asm.load(Width::Word, R1, R10, stack::THREAD);
        self.asm.store(Width::Word, record, at::THREAD, R1);
        self.asm.store(Width::Double, record, at::START, time);
        self.asm.store(Width::Double, record, at::END, time);
    }
}

/// Where argument `index` of a record lies.
pub(crate) const fn argument(index: i16) -> i16 {
    at::ARGUMENTS + 8 * index
}
