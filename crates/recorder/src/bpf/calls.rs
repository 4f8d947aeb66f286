//! Programs at the begin and the end of every system call.

use super::asm::Register::{R0, R1, R2, R3, R6, R7, R8, R9, R10};
use super::asm::{Do, Helper, If, Instruction, Width};
use super::layout::Layout;
use super::record::{Kind, PATH_BYTES_MAX, SHORT_BYTES, at};
use super::routine::{Maps, REGISTER_BYTES, REGISTERS, Routine, argument, slot, stack};
use crate::call::{Argument, Call, MAP, NUMBERS, Wanted};

/// What to do with a call: bits of the values of `Maps::wanted`.
mod want {
    /// Record it.
    pub(super) const RECORD: i32 = 1;
    /// Tell the file behind the descriptor that is its result.
    pub(super) const MADE: i32 = 1 << 1;
    /// Copy a path.
    pub(super) const PATH: i32 = 1 << 2;
    /// Copy a second one.
    pub(super) const SECOND_PATH: i32 = 1 << 3;
    /// Copy eight bytes.
    pub(super) const POINTED: i32 = 1 << 4;
    /// Record it only if it is about a descriptor.
    pub(super) const MAP: i32 = 1 << 5;
    /// Where in the registers the first address lies: six bits from here on.
    pub(super) const FIRST_SHIFT: i32 = 8;
    /// Where in the registers the second one lies.
    pub(super) const SECOND_SHIFT: i32 = 16;
    /// The six bits; registers take 8 bytes each.
    pub(super) const OFFSET: i32 = 0x38;
}

/// The word that says what to do with a call.
pub(crate) fn word(number: usize, call: Call) -> u32 {
    let Wanted { path, second_path, made, pointed } = call.wanted();
    let offset = |index: Option<Argument>| {
        index.map_or(0, |index| i32::from(REGISTERS.1[usize::from(index)]))
    };
    let mut word = want::RECORD;
    let mut set = |bit: i32, is: bool| word |= if is { bit } else { 0 };
    set(want::MADE, made);
    set(want::PATH, path.is_some());
    set(want::SECOND_PATH, second_path.is_some());
    set(want::POINTED, pointed.is_some());
    set(want::MAP, number == MAP);
    word |= offset(path.or(pointed)) << want::FIRST_SHIFT;
    word |= offset(second_path) << want::SECOND_SHIFT;
    word.cast_unsigned()
}

/// `sys_enter(regs, number)`: remembers what is asked and when.
pub(crate) fn enter(maps: &Maps, layout: &Layout) -> Vec<Instruction> {
    let mut routine = Routine::new(maps, layout);
    let end = routine.end;
    // The call first: an element of an array costs less than one of a hash table, and every thread
    // of the machine comes by here.
    let asm = &mut routine.asm;
    asm.load(Width::Double, R8, R6, 8);
    asm.jump_if(R8, If::Greater, NUMBERS.cast_signed() - 1, end);
    asm.store(Width::Word, R10, stack::KEY, R8);
    routine.look_up(&maps.wanted, stack::KEY);
    let asm = &mut routine.asm;
    asm.jump_if(R0, If::Equal, 0, end);
    asm.load(Width::Word, R9, R0, 0);
    asm.jump_if(R9, If::Equal, 0, end);
    routine.find_slot(end);
    let asm = &mut routine.asm;
    asm.store(Width::Word, R7, slot::NUMBER, R8);
    asm.load(Width::Double, R6, R6, 0);
    routine.read((R7, slot::REGISTERS), REGISTER_BYTES, (R6, REGISTERS.0));
    let asm = &mut routine.asm;
    let is_file = asm.label();
    asm.jump_if(R9, If::Bits, want::MAP, is_file);
    let go_on = asm.label();
    asm.jump(go_on);
    asm.bind(is_file);
    // The descriptor is 32 bits wide; -1 stands for none.
    asm.load(Width::Word, R1, R7, slot::REGISTERS + REGISTERS.1[4]);
    asm.set(R2, -1);
    asm.calculate_with(Do::ShiftLeft, R2, 32);
    asm.calculate_with(Do::ShiftRight, R2, 32);
    asm.jump_if_to(R1, If::Equal, R2, end);
    asm.bind(go_on);
    asm.store(Width::Word, R7, slot::WANTED, R9);
    asm.call(Helper::Time);
    asm.store(Width::Double, R7, slot::START, R0);
    processor_time(&mut routine);
    routine.finish()
}

/// Works out the processor time since the call before; R0 is now.
fn processor_time(routine: &mut Routine) {
    let asm = &mut routine.asm;
    let positive = asm.label();
    asm.load(Width::Double, R1, R7, slot::LAST_END);
    asm.calculate(Do::Subtract, R0, R1);
    asm.load(Width::Double, R1, R7, slot::OFF);
    asm.calculate(Do::Subtract, R0, R1);
    let negative = asm.label();
    asm.jump_if(R0, If::LessSigned, 0, negative);
    asm.jump(positive);
    asm.bind(negative);
    asm.set(R0, 0);
    asm.bind(positive);
    asm.store(Width::Double, R7, slot::CPU_GAP, R0);
}

/// `sys_exit(regs, result)`: writes the record.
pub(crate) fn exit(maps: &Maps, layout: &Layout) -> Vec<Instruction> {
    let mut routine = Routine::new(maps, layout);
    let end = routine.end;
    routine.find_slot(end);
    let asm = &mut routine.asm;
    asm.load(Width::Word, R8, R7, slot::WANTED);
    asm.jump_if(R8, If::Equal, 0, end);
    asm.store_number(Width::Word, R7, slot::WANTED, 0);
    asm.call(Helper::Time);
    asm.copy(R9, R0);
    asm.store(Width::Double, R7, slot::LAST_END, R9);
    asm.store_number(Width::Double, R7, slot::OFF, 0);
    let long = asm.label();
    asm.jump_if(R8, If::Bits, want::MADE | want::PATH | want::POINTED, long);
    routine.reserve(SHORT_BYTES);
    fill(&mut routine);
    routine.submit(R0);
    routine.asm.jump(end);
    routine.asm.bind(long);
    routine.asm.store_number(Width::Word, R10, stack::KEY, 0);
    routine.look_up(&maps.scratch, stack::KEY);
    routine.asm.jump_if(R0, If::Equal, 0, end);
    fill(&mut routine);
    routine.asm.copy(R6, R0);
    for offset in [at::INODE, at::DEVICE, at::SIZE, at::FILE_MODE, at::CACHED, at::PATH_BYTES] {
        routine.asm.store_number(Width::Double, R6, offset, 0);
    }
    tell_made(&mut routine);
    copy_pointed(&mut routine);
    copy_paths(&mut routine);
    routine.finish()
}

/// Fills the first 88 bytes of the record in R0; R6 is the context, R9 the time. R1 is lost.
fn fill(routine: &mut Routine) {
    let asm = &mut routine.asm;
    asm.load(Width::Word, R1, R7, slot::NUMBER);
    asm.calculate_with(Do::ShiftLeft, R1, 16);
    asm.calculate_with(Do::Or, R1, Kind::Call as i32);
    asm.store(Width::Word, R0, at::KIND, R1);
    asm.load(Width::Word, R1, R10, stack::THREAD);
    asm.store(Width::Word, R0, at::THREAD, R1);
    asm.load(Width::Double, R1, R7, slot::START);
    asm.store(Width::Double, R0, at::START, R1);
    asm.store(Width::Double, R0, at::END, R9);
    asm.load(Width::Double, R1, R7, slot::CPU_GAP);
    asm.store(Width::Double, R0, at::CPU_GAP, R1);
    asm.load(Width::Double, R1, R6, 8);
    asm.store(Width::Double, R0, at::RESULT, R1);
    for (index, register) in (0..).zip(REGISTERS.1) {
        asm.load(Width::Double, R1, R7, slot::REGISTERS + register);
        asm.store(Width::Double, R0, argument(index), R1);
    }
}

/// The file behind the descriptor that is the result: `current->files->fdt->fd[result]`.
fn tell_made(routine: &mut Routine) {
    let skip = routine.asm.label();
    let (table, descriptors) = routine.layout.table;
    let asm = &mut routine.asm;
    let made = asm.label();
    asm.jump_if(R8, If::Bits, want::MADE, made);
    asm.jump(skip);
    asm.bind(made);
    asm.load(Width::Double, R1, R6, at::RESULT);
    asm.jump_if(R1, If::LessSigned, 0, skip);
    asm.call(Helper::CurrentTask);
    asm.copy(R9, R0);
    routine.follow(R9, routine.layout.task.files);
    routine.follow(R9, table);
    routine.follow(R9, descriptors);
    let asm = &mut routine.asm;
    asm.load(Width::Double, R1, R6, at::RESULT);
    asm.calculate_with(Do::ShiftLeft, R1, 3);
    asm.calculate(Do::Add, R9, R1);
    routine.follow(R9, 0);
    routine.tell_file();
    routine.asm.bind(skip);
}

/// R3 = the address in the register that the bits of R8 from `shift` on name.
fn load_address(routine: &mut Routine, shift: i32) {
    let asm = &mut routine.asm;
    asm.copy(R1, R8);
    asm.calculate_with(Do::ShiftRight, R1, shift);
    asm.calculate_with(Do::And, R1, want::OFFSET);
    asm.copy(R2, R7);
    asm.calculate(Do::Add, R2, R1);
    asm.load(Width::Double, R3, R2, slot::REGISTERS);
}

/// Eight bytes of the program's, where the inode of a file would be.
fn copy_pointed(routine: &mut Routine) {
    let (pointed, skip) = (routine.asm.label(), routine.asm.label());
    routine.asm.jump_if(R8, If::Bits, want::POINTED, pointed);
    routine.asm.jump(skip);
    routine.asm.bind(pointed);
    load_address(routine, want::FIRST_SHIFT);
    routine.asm.address(R1, R6, at::INODE);
    routine.asm.set(R2, 8);
    routine.asm.call(Helper::ReadUser);
    routine.asm.bind(skip);
}

/// Copies the path whose address is in R3 behind `R9` bytes of paths; R0 is its length, 0 to
/// `PATH_BYTES_MAX`.
fn copy_path(routine: &mut Routine) {
    let (nothing, copied) = (routine.asm.label(), routine.asm.label());
    let asm = &mut routine.asm;
    asm.copy(R1, R6);
    asm.calculate(Do::Add, R1, R9);
    asm.calculate_with(Do::Add, R1, i32::from(at::PATHS));
    asm.set(R2, PATH_BYTES_MAX);
    asm.call(Helper::ReadUserText);
    asm.jump_if(R0, If::LessOrEqualSigned, 0, nothing);
    asm.jump_if(R0, If::Greater, PATH_BYTES_MAX, nothing);
    asm.jump(copied);
    asm.bind(nothing);
    asm.set(R0, 0);
    asm.bind(copied);
}

/// Copies the paths behind the record, and all of it into the ring.
fn copy_paths(routine: &mut Routine) {
    let (first, second, output) = (routine.asm.label(), routine.asm.label(), routine.asm.label());
    routine.asm.set(R9, 0);
    routine.asm.jump_if(R8, If::Bits, want::PATH, first);
    routine.asm.jump(output);
    routine.asm.bind(first);
    load_address(routine, want::FIRST_SHIFT);
    copy_path(routine);
    routine.asm.copy(R9, R0);
    routine.asm.store(Width::Word, R6, at::PATH_BYTES, R9);
    routine.asm.jump_if(R8, If::Bits, want::SECOND_PATH, second);
    routine.asm.jump(output);
    routine.asm.bind(second);
    load_address(routine, want::SECOND_SHIFT);
    copy_path(routine);
    routine.asm.calculate(Do::Add, R9, R0);
    routine.asm.bind(output);
    let asm = &mut routine.asm;
    asm.copy(R2, R6);
    asm.copy(R3, R9);
    asm.calculate_with(Do::Add, R3, i32::from(at::PATHS));
    routine.output();
}
