//! Programs about the page cache: pages that enter it, and pages touched through mappings.

use super::asm::Register::{R0, R1, R6, R7, R8, R9, R10};
use super::asm::{Do, Helper, If, Instruction, Width};
use super::layout::{Layout, Pages};
use super::record::{Kind, at};
use super::routine::{Maps, Routine, argument, slot, stack};

/// Begins a record about pages in R6, at this moment. R8 survives, R9 does not.
fn begin(routine: &mut Routine, kind: Kind) {
    routine.asm.call(Helper::Time);
    routine.asm.copy(R9, R0);
    routine.reserve(i32::from(at::PATHS));
    routine.asm.copy(R6, R0);
    routine.head(R6, kind, R9);
    for offset in [at::FILE_MODE, at::CACHED, at::PATH_BYTES] {
        routine.asm.store_number(Width::Double, R6, offset, 0);
    }
}

/// Fills in the file and hands the record over; R8 is the `struct address_space *`.
fn end(routine: &mut Routine, pages: Pages) {
    routine.asm.copy(R9, R8);
    routine.follow(R9, pages.host);
    routine.tell_inode();
    routine.submit(R6);
}

/// `mm_filemap_add_to_page_cache(folio)`.
pub(crate) fn inserted(maps: &Maps, layout: &Layout, pages: Pages) -> Vec<Instruction> {
    let mut routine = Routine::new(maps, layout);
    routine.asm.load(Width::Double, R7, R6, 0);
    routine.require_process();
    begin(&mut routine, Kind::Inserted);
    of_folio(&mut routine, pages);
    end(&mut routine, pages);
    routine.finish()
}

/// Fills in first page and number of pages of the folio in R7; R8 = its mapping.
fn of_folio(routine: &mut Routine, pages: Pages) {
    let single = routine.asm.label();
    let large = routine.asm.label();
    routine.read((R6, argument(0)), 8, (R7, pages.index));
    routine.asm.store_number(Width::Double, R6, argument(1), 1);
    routine.asm.copy(R8, R7);
    routine.follow(R8, pages.flags);
    routine.asm.calculate_with(Do::ShiftRight, R8, pages.large);
    routine.asm.jump_if(R8, If::Bits, 1, large);
    routine.asm.jump(single);
    routine.asm.bind(large);
    routine.asm.copy(R8, R7);
    routine.follow(R8, pages.order);
    let asm = &mut routine.asm;
    asm.calculate_with(Do::And, R8, 0x1f);
    asm.set(R1, 1);
    asm.calculate(Do::ShiftLeft, R1, R8);
    asm.store(Width::Double, R6, argument(1), R1);
    asm.bind(single);
    asm.copy(R8, R7);
    routine.follow(R8, pages.mapping);
}

/// `mm_filemap_fault(mapping, page)`: one page was touched that was not mapped.
pub(crate) fn fault(maps: &Maps, layout: &Layout, pages: Pages) -> Vec<Instruction> {
    let mut routine = Routine::new(maps, layout);
    let end_of_program = routine.end;
    routine.asm.load(Width::Double, R8, R6, 0);
    routine.find_slot(end_of_program);
    routine.asm.load(Width::Double, R7, R6, 8);
    begin(&mut routine, Kind::Fault);
    routine.asm.store(Width::Double, R6, argument(0), R7);
    routine.asm.store_number(Width::Double, R6, argument(1), 1);
    end(&mut routine, pages);
    routine.finish()
}

/// `mm_filemap_map_pages(mapping, first, last)`: pages around a touched one were mapped with it.
pub(crate) fn mapped(maps: &Maps, layout: &Layout, pages: Pages) -> Vec<Instruction> {
    let mut routine = Routine::new(maps, layout);
    let end_of_program = routine.end;
    routine.asm.load(Width::Double, R8, R6, 0);
    routine.find_slot(end_of_program);
    let asm = &mut routine.asm;
    asm.load(Width::Double, R7, R6, 8);
    asm.load(Width::Double, R1, R6, 16);
    asm.calculate(Do::Subtract, R1, R7);
    asm.calculate_with(Do::Add, R1, 1);
    asm.store(Width::Double, R10, stack::LONG_KEY, R1);
    begin(&mut routine, Kind::Fault);
    routine.asm.store(Width::Double, R6, argument(0), R7);
    routine.asm.load(Width::Double, R1, R10, stack::LONG_KEY);
    routine.asm.store(Width::Double, R6, argument(1), R1);
    end(&mut routine, pages);
    routine.finish()
}

/// `writeback_dirty_folio(folio, mapping)`: outside of calls that concern files, a page was stored
/// to through a mapping.
pub(crate) fn dirtied(maps: &Maps, layout: &Layout, pages: Pages) -> Vec<Instruction> {
    let mut routine = Routine::new(maps, layout);
    let end_of_program = routine.end;
    routine.find_slot(end_of_program);
    routine.asm.load(Width::Word, R8, R7, slot::WANTED);
    routine.asm.jump_if(R8, If::NotEqual, 0, end_of_program);
    routine.asm.load(Width::Double, R7, R6, 0);
    begin(&mut routine, Kind::Dirtied);
    of_folio(&mut routine, pages);
    end(&mut routine, pages);
    routine.finish()
}
