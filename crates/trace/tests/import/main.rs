//! Importers against files that the tools themselves wrote, or that were made by hand from the
//! formats' descriptions.

mod blocks;
mod collected;
mod columns;
mod counters;
mod hostile;
mod syscalls;
