//! The words that reports use, each in a sentence. `docs/glossary.md` has the same table; a test
//! holds one against the other.

/// A word and what it means.
pub(crate) struct Word {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
}

const fn word(name: &'static str, meaning: &'static str) -> Word {
    Word { name, meaning }
}

/// The field's terms first, then the few that are ioscape's own.
pub(crate) const WORDS: &[Word] = &[
    word("IOPS", "Requests finished per second (I/O operations per second)."),
    word("throughput", "Bytes moved per second: IOPS times the request size."),
    word(
        "queue depth (QD, `depth`)",
        "How many requests one process keeps in flight at a time. At queue depth 1 it waits for \
         each request before it makes the next.",
    ),
    word(
        "p50, p99, p99.9",
        "Response times: half, 99 % or 99.9 % of the requests took at most this long.",
    ),
    word(
        "working set, data touched (`unique_bytes`)",
        "How many different bytes a workload reads or writes. If it fits into memory, most \
         requests never reach the disk.",
    ),
    word("request size (`size_mean`)", "Bytes of one read or write, the mean where they vary."),
    word("share of reads (`read_frac`)", "1: reads only. 0: writes only."),
    word(
        "share sequential (`seq_frac`)",
        "How many requests begin where the one before ended. 0: all at random places.",
    ),
    word("processes (`process_num`)", "How many processes make requests at the same time."),
    word("page cache", "Memory in which the operating system keeps file data."),
    word(
        "cached",
        "Share of the requested pages that were found in the page cache (the hit rate).",
    ),
    word("direct I/O", "Requests that go past the page cache to the device (O_DIRECT)."),
    word("commit, fdatasync", "Wait until what was written is on stable storage."),
    word(
        "absorbed, durable",
        "Absorbed: throughput of writes as the program sees it. Durable: the same bytes, over the time \
         until all is on stable storage.",
    ),
    word("write-back", "Writes are kept in memory and go to the disk later, in the background."),
    word(
        "coefficient of variation",
        "Standard deviation over mean: how much repeated measurements differ.",
    ),
    word(
        "95 % interval",
        "Where the true figure lies in 95 of 100 cases. A prediction has a 90 % interval: nine in \
         ten new measurements fall into it.",
    ),
    word("workload", "One setting of all parameters: which requests are made."),
    word("measurement, visit", "One workload measured once, for some seconds."),
    word(
        "control measurement, canary",
        "One small workload that is measured again and again. If \
         its result moves, the machine changed during the run.",
    ),
    word(
        "map, landscape",
        "What a run finds out: throughput over the data touched, and over each \
         other parameter.",
    ),
    word("region", "A range of working sets with one behaviour: in the cache, beyond it, …"),
    word(
        "border",
        "Where one region ends: where throughput begins to fall (onset), and the size of the \
         cache that ends there (capacity).",
    ),
    word(
        "middle of a region, focal vector",
        "The workload that the graphs of a region start from: \
         each graph changes one parameter of it.",
    ),
    word("family", "The graphs of one region."),
    word("layer", "The part of a map that uses the page cache, or the part that goes past it."),
    word("span", "How much data the direct I/O requests are spread over."),
    word("data sheet", "Nine workloads whose figures are asked for first."),
    word(
        "model, blend",
        "A formula fitted to the measurements. It predicts workloads that were \
         not measured.",
    ),
    word("product model", "Chen and Patterson's prediction of 1994: measured curves multiplied."),
    word("doubt", "A warning about a figure, with what happened and what to do."),
    word(
        "grade",
        "How far to trust a record: A (repeats within 5 %, nothing in doubt) to D (do not \
         decide by it).",
    ),
    word("record", "The file of a run (JSON lines): everything measured, and on what machine."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_docs_has_the_same_words() {
        let page = include_str!("../../../docs/glossary.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
        let found: Vec<&str> = rows.filter(|row| !row.starts_with("---")).skip(1).collect();
        let told: Vec<String> =
            WORDS.iter().map(|word| format!("{} | {}", word.name, word.meaning)).collect();
        assert_eq!(found, told);
    }
}
