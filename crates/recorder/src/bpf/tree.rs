//! Programs that follow threads: born, become another program, on and off a processor, gone.

use super::asm::Register::{R0, R1, R6, R7, R8, R9, R10};
use super::asm::{Do, Helper, If, Instruction, Width};
use super::layout::Layout;
use super::record::{Kind, SHORT_BYTES, at};
use super::routine::{Maps, Routine, UNFOLLOWED, argument, slot, stack};

/// Writes a slot into the stack for a thread that begins at the time in `R8`; `is_off` where it is
/// on no processor yet.
fn new_slot(routine: &mut Routine, is_off: bool) {
    for offset in (0..slot::BYTES).step_by(8) {
        routine.asm.store_number(Width::Double, R10, stack::VALUE + offset, 0);
    }
    let begins = [slot::LAST_END, slot::BEGAN];
    for offset in begins.into_iter().chain(is_off.then_some(slot::OFF_SINCE)) {
        routine.asm.store(Width::Double, R10, stack::VALUE + offset, R8);
    }
}

/// Stores the slot in the stack under the key in the stack; a full map is counted.
fn keep_slot(routine: &mut Routine, key: i16) {
    let kept = routine.asm.label();
    let maps = routine.maps;
    routine.update(&maps.threads, key, stack::VALUE);
    routine.asm.jump_if(R0, If::Equal, 0, kept);
    routine.count(UNFOLLOWED);
    routine.asm.bind(kept);
}

/// `sched_process_fork(parent, child)`: the child is recorded, too.
pub(crate) fn fork(maps: &Maps, layout: &Layout) -> Vec<Instruction> {
    let mut routine = Routine::new(maps, layout);
    let end = routine.end;
    routine.find_slot(end);
    routine.asm.call(Helper::Time);
    routine.asm.copy(R8, R0);
    routine.asm.load(Width::Double, R9, R6, 8);
    routine.read((R10, stack::KEY), 4, (R9, layout.task.pid));
    new_slot(&mut routine, true);
    keep_slot(&mut routine, stack::KEY);
    // The counter of a full map may have taken the key's place.
    routine.read((R10, stack::KEY), 4, (R9, layout.task.pid));
    routine.asm.load(Width::Double, R7, R6, 0);
    routine.reserve(SHORT_BYTES);
    routine.asm.copy(R6, R0);
    routine.head(R6, Kind::Fork, R8);
    for index in 0..6 {
        routine.asm.store_number(Width::Double, R6, argument(index), 0);
    }
    routine.asm.load(Width::Word, R1, R10, stack::KEY);
    routine.asm.store(Width::Double, R6, argument(0), R1);
    routine.read((R6, argument(1)), 4, (R9, layout.task.tgid));
    routine.read((R6, argument(2)), 8, (R7, layout.task.files));
    routine.read((R6, argument(3)), 8, (R9, layout.task.files));
    routine.submit(R6);
    routine.finish()
}

/// `sched_process_exec(task, thread_before, program)`: a thread that was not the first of its
/// process takes the first one's number.
pub(crate) fn exec(maps: &Maps, layout: &Layout) -> Vec<Instruction> {
    let mut routine = Routine::new(maps, layout);
    let (end, known) = (routine.end, routine.asm.label());
    let asm = &mut routine.asm;
    asm.call(Helper::CurrentIds);
    asm.store(Width::Word, R10, stack::THREAD, R0);
    asm.load(Width::Double, R1, R6, 8);
    asm.store(Width::Word, R10, stack::KEY, R1);
    routine.look_up(&maps.threads, stack::KEY);
    let asm = &mut routine.asm;
    asm.jump_if(R0, If::Equal, 0, end);
    // The call that did this ends no more.
    asm.store_number(Width::Word, R0, slot::WANTED, 0);
    asm.call(Helper::Time);
    asm.copy(R8, R0);
    asm.load(Width::Word, R1, R10, stack::KEY);
    asm.load(Width::Word, R9, R10, stack::THREAD);
    asm.jump_if_to(R1, If::Equal, R9, known);
    routine.remove(&maps.threads, stack::KEY);
    new_slot(&mut routine, false);
    keep_slot(&mut routine, stack::THREAD);
    routine.asm.bind(known);
    routine.asm.load(Width::Double, R7, R6, 8);
    routine.asm.load(Width::Double, R9, R6, 16);
    routine.reserve(i32::from(at::PATHS));
    routine.asm.copy(R6, R0);
    routine.head(R6, Kind::Exec, R8);
    routine.asm.store(Width::Double, R6, argument(0), R7);
    routine.asm.store_number(Width::Double, R6, at::PATH_BYTES, 0);
    routine.follow(R9, layout.program_file);
    routine.tell_file();
    routine.submit(R6);
    routine.finish()
}

/// `sched_process_exit(task)`: with what the kernel counted for it.
pub(crate) fn exit(maps: &Maps, layout: &Layout) -> Vec<Instruction> {
    let mut routine = Routine::new(maps, layout);
    let end = routine.end;
    routine.find_slot(end);
    routine.asm.call(Helper::Time);
    routine.asm.copy(R8, R0);
    routine.asm.load(Width::Double, R9, R6, 0);
    // Processor time, before the slot goes.
    routine.asm.load(Width::Double, R1, R7, slot::BEGAN);
    routine.asm.calculate(Do::Subtract, R0, R1);
    routine.asm.load(Width::Double, R1, R7, slot::OFF_TOTAL);
    routine.asm.calculate(Do::Subtract, R0, R1);
    routine.asm.copy(R7, R0);
    routine.remove(&maps.threads, stack::THREAD);
    routine.reserve(SHORT_BYTES);
    routine.asm.copy(R6, R0);
    routine.head(R6, Kind::Exit, R8);
    for index in 0..5 {
        routine.asm.store_number(Width::Double, R6, argument(index), 0);
    }
    routine.asm.store(Width::Double, R6, argument(5), R7);
    routine.read((R6, argument(0)), 4, (R9, layout.task.exit_code));
    for (index, offset) in (1..).zip(layout.task.counted.into_iter().flatten()) {
        routine.read((R6, argument(index)), 8, (R9, offset));
    }
    routine.submit(R6);
    routine.finish()
}

/// `sched_switch(preempted, before, next)`: how long threads are on no processor.
pub(crate) fn switch(maps: &Maps, layout: &Layout) -> Vec<Instruction> {
    let mut routine = Routine::new(maps, layout);
    let (end, next) = (routine.end, routine.asm.label());
    routine.find_slot(next);
    routine.asm.call(Helper::Time);
    routine.asm.store(Width::Double, R7, slot::OFF_SINCE, R0);
    routine.asm.bind(next);
    routine.asm.load(Width::Double, R9, R6, 16);
    routine.read((R10, stack::KEY), 4, (R9, layout.task.pid));
    routine.look_up(&maps.threads, stack::KEY);
    let asm = &mut routine.asm;
    asm.jump_if(R0, If::Equal, 0, end);
    asm.copy(R7, R0);
    asm.load(Width::Double, R8, R7, slot::OFF_SINCE);
    asm.jump_if(R8, If::Equal, 0, end);
    asm.call(Helper::Time);
    asm.calculate(Do::Subtract, R0, R8);
    asm.store_number(Width::Double, R7, slot::OFF_SINCE, 0);
    for total in [slot::OFF, slot::OFF_TOTAL] {
        asm.load(Width::Double, R1, R7, total);
        asm.calculate(Do::Add, R1, R0);
        asm.store(Width::Double, R7, total, R1);
    }
    routine.finish()
}
