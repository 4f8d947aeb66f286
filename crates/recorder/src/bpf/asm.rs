//! An assembler for the kernel's virtual machine: instructions, registers, labels.
//!
//! The encoding is that of the kernel's `Documentation/bpf/standardization/instruction-set.rst`.
//! Nothing here knows what a program is for.

/// One instruction, as the kernel reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    code: u8,
    /// Destination in the low four bits, source in the high ones.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A register. R0 holds results, R1 to R5 arguments, which calls destroy; R6 to R9 survive calls;
/// R10 is the top of the stack of 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R6 = 6,
    R7,
    R8,
    R9,
    R10,
}

/// How wide a load or store is; the value is the size field of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Width {
    /// 1 byte.
    Byte = 0x10,
    /// 4 bytes.
    Word = 0x00,
    /// 8 bytes.
    Double = 0x18,
}

/// What a register is held against; the value is the operation of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum If {
    /// Equal.
    Equal = 0x10,
    /// Greater, unsigned.
    Greater = 0x20,
    /// Any of these bits is set.
    Bits = 0x40,
    /// Not equal.
    NotEqual = 0x50,
    /// Less, signed.
    LessSigned = 0xc0,
    /// Less or equal, signed.
    LessOrEqualSigned = 0xd0,
}

/// A calculation in a register; the value is the operation of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Do {
    /// Sum.
    Add = 0x00,
    /// Difference.
    Subtract = 0x10,
    /// Bits of either.
    Or = 0x40,
    /// Bits of both.
    And = 0x50,
    /// Shift to the left.
    ShiftLeft = 0x60,
    /// Shift to the right, the sign stays.
    ShiftRightSigned = 0xc0,
    /// Shift to the right, zeros come in.
    ShiftRight = 0x70,
    /// Copy.
    Move = 0xb0,
}

/// What the kernel does for a program on request; the values are those of `enum bpf_func_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Helper {
    /// Finds an element of a map.
    MapLookup = 1,
    /// Stores an element.
    MapUpdate = 2,
    /// Removes an element.
    MapDelete = 3,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    Time = 5,
    /// Process in the high half, thread in the low.
    CurrentIds = 14,
    /// `struct task_struct *` of this thread.
    CurrentTask = 35,
    /// Copies from the program's memory.
    ReadUser = 112,
    /// Copies from the kernel's memory.
    ReadKernel = 113,
    /// Copies text from the program's memory; the length with its zero.
    ReadUserText = 114,
    /// Copies a record into the ring.
    RingOutput = 130,
    /// Makes room in the ring.
    RingReserve = 131,
    /// Hands over what was written into that room.
    RingSubmit = 132,
}

/// A place to jump to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(usize);

const CLASS_LOAD_DOUBLE: u8 = 0x18;
const CLASS_LOAD: u8 = 0x61;
const CLASS_STORE_NUMBER: u8 = 0x62;
const CLASS_STORE: u8 = 0x63;
const CLASS_ADD_IN_MEMORY: u8 = 0xdb;
const CLASS_JUMP: u8 = 0x05;
const CLASS_CALCULATE: u8 = 0x07;
const FROM_REGISTER: u8 = 0x08;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// Says that a 64-bit constant is the descriptor of a map.
const IS_MAP: u8 = 1;

/// A program that is being written.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    code: Vec<Instruction>,
    /// Where each label stands.
    labels: Vec<Option<usize>>,
    /// Instructions that jump, and where to.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    fn push(&mut self, code: u8, registers: (u8, u8), offset: i16, immediate: i32) {
        let registers = registers.0 | registers.1 << 4;
        self.code.push(Instruction { code, registers, offset, immediate });
    }

    /// `target = target OPERATION source`.
    pub(crate) fn calculate(&mut self, operation: Do, target: Register, source: Register) {
        let code = CLASS_CALCULATE | FROM_REGISTER | operation as u8;
        self.push(code, (target as u8, source as u8), 0, 0);
    }

    /// `target = target OPERATION number`.
    pub(crate) fn calculate_with(&mut self, operation: Do, target: Register, number: i32) {
        self.push(CLASS_CALCULATE | operation as u8, (target as u8, 0), 0, number);
    }

    /// `target = source`.
    pub(crate) fn copy(&mut self, target: Register, source: Register) {
        self.calculate(Do::Move, target, source);
    }

    /// `target = number`.
    pub(crate) fn set(&mut self, target: Register, number: i32) {
        self.calculate_with(Do::Move, target, number);
    }

    /// `target = base + offset`.
    pub(crate) fn address(&mut self, target: Register, base: Register, offset: i16) {
        self.copy(target, base);
        self.calculate_with(Do::Add, target, i32::from(offset));
    }

    /// `target = *(base + offset)`.
    pub(crate) fn load(&mut self, width: Width, target: Register, base: Register, offset: i16) {
        self.push(CLASS_LOAD | width as u8, (target as u8, base as u8), offset, 0);
    }

    /// `*(base + offset) = source`.
    pub(crate) fn store(&mut self, width: Width, base: Register, offset: i16, source: Register) {
        self.push(CLASS_STORE | width as u8, (base as u8, source as u8), offset, 0);
    }

    /// `*(base + offset) = number`.
    pub(crate) fn store_number(&mut self, width: Width, base: Register, offset: i16, number: i32) {
        self.push(CLASS_STORE_NUMBER | width as u8, (base as u8, 0), offset, number);
    }

    /// `*(base + offset) += source`, undivided.
    pub(crate) fn add_in_memory(&mut self, base: Register, offset: i16, source: Register) {
        self.push(CLASS_ADD_IN_MEMORY, (base as u8, source as u8), offset, 0);
    }

    /// The map with this descriptor.
    pub(crate) fn map(&mut self, target: Register, descriptor: i32) {
        self.push(CLASS_LOAD_DOUBLE, (target as u8, IS_MAP), 0, descriptor);
        self.push(0, (0, 0), 0, 0);
    }

    /// A place that is bound later, or was.
    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The label stands here.
    pub(crate) fn bind(&mut self, label: Label) {
        assert!(self.labels[label.0].is_none(), "a label stands in one place");
        self.labels[label.0] = Some(self.code.len());
    }

    /// Goes to the label.
    pub(crate) fn jump(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(CLASS_JUMP, (0, 0), 0, 0);
    }

    /// Goes to the label if the register is so.
    pub(crate) fn jump_if(&mut self, register: Register, is: If, number: i32, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(CLASS_JUMP | is as u8, (register as u8, 0), 0, number);
    }

    /// Goes to the label if one register is so to the other.
    pub(crate) fn jump_if_to(&mut self, register: Register, is: If, other: Register, to: Label) {
        self.jumps.push((self.code.len(), to));
        let code = CLASS_JUMP | FROM_REGISTER | is as u8;
        self.push(code, (register as u8, other as u8), 0, 0);
    }

    /// Asks the kernel; the answer is in R0.
    pub(crate) fn call(&mut self, helper: Helper) {
        self.push(CALL, (0, 0), 0, helper as i32);
    }

    /// Ends the program; its result is R0.
    pub(crate) fn exit(&mut self) {
        self.push(EXIT, (0, 0), 0, 0);
    }

    /// The program, with its jumps resolved.
    pub(crate) fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let to = self.labels[label.0].expect("a label that is jumped to was bound");
            let distance = to.cast_signed() - at.cast_signed() - 1;
            self.code[at].offset = i16::try_from(distance).expect("programs are short");
        }
        self.code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(instruction: Instruction) -> [u8; 8] {
        let mut bytes = [instruction.code, instruction.registers, 0, 0, 0, 0, 0, 0];
        bytes[2..4].copy_from_slice(&instruction.offset.to_le_bytes());
        bytes[4..].copy_from_slice(&instruction.immediate.to_le_bytes());
        bytes
    }

    /// One instruction and its bytes, from the kernel's `include/linux/filter.h` by hand.
    #[track_caller]
    fn check(write: impl Fn(&mut Assembler), expected: &[[u8; 8]]) {
        let mut assembler = Assembler::default();
        write(&mut assembler);
        let code: Vec<[u8; 8]> = assembler.finish().into_iter().map(bytes).collect();
        assert_eq!(code, expected);
    }

    #[test]
    fn instructions_are_what_the_kernel_reads() {
        use Register::{R0, R1, R2, R6, R10};
        check(|a| a.copy(R6, R1), &[[0xbf, 0x16, 0, 0, 0, 0, 0, 0]]);
        check(|a| a.set(R0, -1), &[[0xb7, 0, 0, 0, 255, 255, 255, 255]]);
        check(|a| a.load(Width::Double, R1, R6, 8), &[[0x79, 0x61, 8, 0, 0, 0, 0, 0]]);
        check(|a| a.load(Width::Byte, R1, R6, 8), &[[0x71, 0x61, 8, 0, 0, 0, 0, 0]]);
        check(|a| a.store(Width::Word, R10, -4, R0), &[[0x63, 0x0a, 252, 255, 0, 0, 0, 0]]);
        check(|a| a.store(Width::Double, R10, -8, R0), &[[0x7b, 0x0a, 248, 255, 0, 0, 0, 0]]);
        check(|a| a.store_number(Width::Word, R10, -4, 7), &[[0x62, 0x0a, 252, 255, 7, 0, 0, 0]]);
        check(|a| a.add_in_memory(R0, 0, R1), &[[0xdb, 0x10, 0, 0, 0, 0, 0, 0]]);
        check(|a| a.call(Helper::RingReserve), &[[0x85, 0, 0, 0, 131, 0, 0, 0]]);
        check(|a| a.calculate_with(Do::ShiftRight, R1, 32), &[[0x77, 1, 0, 0, 32, 0, 0, 0]]);
        check(|a| a.calculate(Do::Subtract, R1, R2), &[[0x1f, 0x21, 0, 0, 0, 0, 0, 0]]);
        check(|a| a.map(R1, 5), &[[0x18, 0x11, 0, 0, 5, 0, 0, 0], [0; 8]]);
        check(
            |a| a.address(R2, R10, -8),
            &[[0xbf, 0xa2, 0, 0, 0, 0, 0, 0], [0x07, 2, 0, 0, 248, 255, 255, 255]],
        );
    }

    #[test]
    fn jumps_count_from_the_next_instruction_both_ways() {
        check(
            |a| {
                let (back, end) = (a.label(), a.label());
                a.bind(back);
                a.jump_if(Register::R0, If::Equal, 0, end);
                a.jump_if_to(Register::R1, If::NotEqual, Register::R2, back);
                a.jump(end);
                a.bind(end);
                a.exit();
            },
            &[
                [0x15, 0, 2, 0, 0, 0, 0, 0],
                [0x5d, 0x21, 254, 255, 0, 0, 0, 0],
                [0x05, 0, 0, 0, 0, 0, 0, 0],
                [0x95, 0, 0, 0, 0, 0, 0, 0],
            ],
        );
    }

    #[test]
    #[should_panic(expected = "was bound")]
    fn a_label_that_stands_nowhere_is_noticed() {
        let mut assembler = Assembler::default();
        let nowhere = assembler.label();
        assembler.jump(nowhere);
        assembler.finish();
    }
}
