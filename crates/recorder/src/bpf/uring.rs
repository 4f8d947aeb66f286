//! Programs about `io_uring`: requests are remembered when they are submitted, and told when they
//! are completed, by whichever thread that is.

use super::asm::Register::{R0, R1, R3, R6, R7, R8, R9, R10};
use super::asm::{Do, Helper, If, Instruction, Width};
use super::layout::{Layout, Uring, UringResult};
use super::record::{Kind, at};
use super::routine::{Maps, Routine, argument, stack};

/// `IORING_OP_FSYNC`.
const SYNC: i32 = 3;
/// `IORING_OP_SYNC_FILE_RANGE`.
const SYNC_RANGE: i32 = 8;

/// Where in a remembered request, the value of `Maps::requests`, what lies; bytes.
mod request {
    pub(super) const START: i16 = 0;
    pub(super) const THREAD: i16 = 8;
    pub(super) const OPCODE: i16 = 16;
    pub(super) const OFFSET: i16 = 24;
    pub(super) const LENGTH: i16 = 32;
    pub(super) const BYTES: i16 = 40;
}

/// Length of a remembered request, bytes.
pub(crate) const REQUEST_BYTES: u32 = request::BYTES as u32;

/// `io_uring_submit_req(request)`.
pub(crate) fn submitted(maps: &Maps, layout: &Layout, uring: Uring) -> Vec<Instruction> {
    let mut routine = Routine::new(maps, layout);
    let (other, told) = (routine.asm.label(), routine.asm.label());
    routine.require_process();
    let asm = &mut routine.asm;
    asm.load(Width::Double, R7, R6, 0);
    asm.store(Width::Double, R10, stack::LONG_KEY, R7);
    for offset in (0..request::BYTES).step_by(8) {
        asm.store_number(Width::Double, R10, stack::VALUE + offset, 0);
    }
    asm.load(Width::Word, R1, R10, stack::THREAD);
    asm.store(Width::Double, R10, stack::VALUE + request::THREAD, R1);
    let value = |offset: i16| (R10, stack::VALUE + offset);
    routine.read(value(request::OPCODE), 1, (R7, uring.opcode));
    routine.asm.load(Width::Byte, R8, R10, stack::VALUE + request::OPCODE);
    let sync = routine.asm.label();
    routine.asm.jump_if(R8, If::Equal, SYNC, sync);
    routine.asm.jump_if(R8, If::Equal, SYNC_RANGE, sync);
    routine.asm.jump(other);
    routine.asm.bind(sync);
    routine.read(value(request::OFFSET), 8, (R7, uring.sync_offset));
    routine.read(value(request::LENGTH), 8, (R7, uring.sync_length));
    routine.asm.jump(told);
    routine.asm.bind(other);
    routine.read(value(request::OFFSET), 8, (R7, uring.position));
    routine.read(value(request::LENGTH), 4, (R7, uring.length));
    routine.asm.bind(told);
    routine.asm.call(Helper::Time);
    routine.asm.store(Width::Double, R10, stack::VALUE + request::START, R0);
    routine.update(&maps.requests, stack::LONG_KEY, stack::VALUE);
    routine.finish()
}

/// `io_uring_complete(ring, request, …)`.
pub(crate) fn completed(maps: &Maps, layout: &Layout, uring: Uring) -> Vec<Instruction> {
    let mut routine = Routine::new(maps, layout);
    let end = routine.end;
    let asm = &mut routine.asm;
    asm.load(Width::Double, R9, R6, 8);
    asm.store(Width::Double, R10, stack::LONG_KEY, R9);
    routine.look_up(&maps.requests, stack::LONG_KEY);
    let asm = &mut routine.asm;
    asm.jump_if(R0, If::Equal, 0, end);
    asm.copy(R7, R0);
    asm.load(Width::Word, R1, R7, request::THREAD);
    asm.store(Width::Word, R10, stack::THREAD, R1);
    match uring.result {
        UringResult::Argument => asm.load(Width::Double, R8, R6, 24),
        UringResult::Entry(offset) => {
            asm.load(Width::Double, R8, R6, 16);
            routine.follow(R8, offset);
        }
    }
    // 32 bits with a sign.
    routine.asm.calculate_with(Do::ShiftLeft, R8, 32);
    routine.asm.calculate_with(Do::ShiftRightSigned, R8, 32);
    routine.reserve(i32::from(at::PATHS));
    let asm = &mut routine.asm;
    asm.copy(R6, R0);
    asm.store_number(Width::Word, R6, at::KIND, Kind::Request as i32);
    asm.store(Width::Double, R6, at::RESULT, R8);
    asm.load(Width::Word, R1, R10, stack::THREAD);
    asm.store(Width::Word, R6, at::THREAD, R1);
    let copies = [
        (request::START, at::START),
        (request::OFFSET, argument(0)),
        (request::LENGTH, argument(1)),
        (request::OPCODE, argument(2)),
    ];
    for (from, to) in copies {
        asm.load(Width::Double, R3, R7, from);
        asm.store(Width::Double, R6, to, R3);
    }
    asm.store_number(Width::Double, R6, at::PATH_BYTES, 0);
    asm.call(Helper::Time);
    asm.store(Width::Double, R6, at::END, R0);
    routine.follow(R9, uring.file);
    routine.tell_file();
    routine.submit(R6);
    routine.remove(&maps.requests, stack::LONG_KEY);
    routine.finish()
}
