//! Few groups in the place of many files: those that are asked for most stand alone, the others with
//! files that are asked for about as often and are about as large.

use std::collections::BTreeMap;

use ioscape_model::app::{FileGroup, PageKind};

/// Files that stand alone.
const ALONE: usize = 120;
/// Groups at most: a model is to stay below 64 KiB.
const GROUPS_MAX: usize = 240;

/// A file of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) kind: PageKind,
    pub(super) bytes: u64,
    pub(super) requests: u64,
    pub(super) unchanged: u64,
}

/// Groups of all files, those first that are asked for most.
pub(super) fn grouped(mut files: Vec<Asked>) -> Vec<FileGroup> {
    files.sort_by_key(|file| (std::cmp::Reverse(file.requests), file.kind, file.bytes));
    let (alone, rest) = files.split_at(files.len().min(ALONE));
    let mut groups: Vec<FileGroup> = alone.iter().map(|file| joined([file])).collect();
    // Parts of a doubling that sizes and counts are told apart by: as fine as there is room for.
    for parts in [8.0, 4.0, 2.0, 1.0, 0.5, 0.25] {
        let mut cells: BTreeMap<(PageKind, u64, u64), Vec<&Asked>> = BTreeMap::new();
        for file in rest {
            let cell = (file.kind, cell(file.requests, parts), cell(file.bytes, parts));
            cells.entry(cell).or_default().push(file);
        }
        if cells.len() + alone.len() <= GROUPS_MAX || parts <= 0.25 {
            groups.extend(cells.into_values().map(joined));
            break;
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.requests.div_ceil(group.files.max(1))));
    groups
}

fn cell(value: u64, parts: f64) -> u64 {
    ((value as f64 + 1.0).log2() * parts) as u64
}

fn joined<'a>(files: impl IntoIterator<Item = &'a Asked>) -> FileGroup {
    let mut group = FileGroup { bytes_min: u64::MAX, ..FileGroup::default() };
    for file in files {
        group.kind = file.kind;
        group.files += 1;
        group.requests += file.requests;
        group.unchanged += file.unchanged;
        group.bytes_min = group.bytes_min.min(file.bytes);
        group.bytes_max = group.bytes_max.max(file.bytes);
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_few_and_lose_no_request() {
        let file = |at: u64| Asked {
            kind: if at.is_multiple_of(3) { PageKind::Page } else { PageKind::Object },
            bytes: at * 7919 % 1_000_003,
            requests: 1 + 200_000 / (at + 1),
            unchanged: at % 2,
        };
        let files: Vec<Asked> = (0..30_000).map(file).collect();
        let groups = grouped(files.clone());
        assert!(groups.len() <= GROUPS_MAX, "{} groups", groups.len());
        let sum = |each: fn(&FileGroup) -> u64| groups.iter().map(each).sum::<u64>();
        assert_eq!(sum(|group| group.files), 30_000);
        assert_eq!(
            sum(|group| group.requests),
            files.iter().map(|file| file.requests).sum::<u64>()
        );
        assert_eq!(sum(|group| group.unchanged), 15_000);
        assert_eq!((groups[0].files, groups[0].requests), (1, 200_001));
    }
}
