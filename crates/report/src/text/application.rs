//! An application's description for people: five parameters first, then what else is known, with
//! small charts, then what is doubtful.

use ioscape_model::app::{App, Behaviour, Loop, PageKind, Site, SizeLaw};
use ioscape_model::units::{show_bytes, show_percent, show_seconds, show_size, three_digits};

use super::{Page, Paint, Style, WIDTH_MAX, WIDTH_MIN};

/// Columns of a bar.
const BAR_COLUMNS: f64 = 30.0;
/// Bars of a chart of sizes.
const BARS_MAX: usize = 10;
/// Operations, classes and streams that are listed.
const LISTED_MAX: usize = 8;

/// The description, `width` columns wide.
pub fn application_text(app: &App, width: usize, color: bool) -> String {
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut page = Page { lines: Vec::new(), width, paint: Paint::new(color) };
    let whole = &app.whole;
    five(&mut page, whole);
    extent(&mut page, app);
    if let Some(site) = &app.site {
        web_site(&mut page, site);
    }
    sizes(&mut page, whole);
    order(&mut page, whole);
    time(&mut page, whole);
    durability(&mut page, whole);
    names(&mut page, whole);
    phases(&mut page, app);
    shares(&mut page, whole);
    if !app.warnings.is_empty() {
        page.heading("What to doubt");
        for doubt in &app.warnings {
            page.wrapped("  ! ", &doubt.text, Style::Warning);
        }
    }
    page.finish().trim_end().to_owned()
}

fn five(page: &mut Page, whole: &Behaviour) {
    let five = &whole.five;
    page.raw(page.paint.styled("The five parameters", Style::Bold));
    for (name, value, meaning) in [
        ("unique_bytes", show_bytes(five.unique_bytes as f64), "data touched"),
        ("size_mean", show_bytes(five.size_mean), "mean request"),
        ("read_frac", fraction(five.read_frac), "of requests are reads"),
        ("seq_frac", fraction(five.seq_frac), "of requests start where the one before ended"),
        ("process_num", five.process_num.to_string(), "active streams at a time"),
    ] {
        page.raw(format!("  {name:<13} {value:>10}  {meaning}"));
    }
    page.raw(String::new());
    page.raw(format!("  -w {}", whole.workload));
}

fn web_site(page: &mut Page, site: &Site) {
    page.heading("Web site");
    let mut line = |text: String| page.wrapped("  ", &text, Style::Plain);
    line(format!(
        "{} requests in {} sessions within {}: {} requests per session, {} sessions at a time",
        site.requests,
        site.sessions,
        show_seconds(site.elapsed_s),
        three_digits(site.requests as f64 / site.sessions.max(1) as f64),
        three_digits(site.sessions_mean)
    ));
    line(format!(
        "{} pages and {} objects embedded in pages, about {}, in {} directories; {} names that are \
         not there",
        site.files_of(PageKind::Page),
        site.files_of(PageKind::Object),
        show_bytes(site.bytes()),
        site.directories,
        site.files_of(PageKind::Missing)
    ));
    if site.requests > 0
        && let Some(tenth) = most_asked(site)
    {
        line(format!(
            "the tenth of the files that is asked for most has {} of the requests",
            show_percent(tenth)
        ));
    }
    if site.months.len() > 1 {
        let months: Vec<String> =
            site.months.iter().map(|month| month.sessions.to_string()).collect();
        line(format!("sessions by month: {}", months.join(", ")));
    }
}

/// Share of the requests that are for the tenth of the files that is asked for most.
fn most_asked(site: &Site) -> Option<f64> {
    let files: u64 = site.files.iter().map(|group| group.files).sum();
    let mut left = files / 10;
    let mut requests = 0.0;
    let mut groups = site.files.clone();
    groups.sort_by_key(|group| std::cmp::Reverse(group.requests / group.files.max(1)));
    for group in &groups {
        let taken = group.files.min(left);
        requests += group.requests as f64 * taken as f64 / group.files.max(1) as f64;
        left -= taken;
    }
    (files >= 10).then(|| requests / site.requests as f64)
}

fn extent(page: &mut Page, app: &App) {
    let whole = &app.whole;
    page.heading("How much");
    let cpu = whole
        .cpu_s
        .map_or(String::new(), |cpu_s| format!(", {} of processor time", show_seconds(cpu_s)));
    let mut line = |text: String| page.wrapped("  ", &text, Style::Plain);
    line(format!(
        "{} read and {} written in {} requests; {} calls in {}{cpu}",
        show_bytes(whole.bytes_read as f64),
        show_bytes(whole.bytes_written as f64),
        whole.requests,
        whole.calls,
        show_seconds(whole.elapsed_s)
    ));
    let unique = &whole.unique;
    line(format!(
        "distinct data: {} read, {} written, {} both",
        show_bytes(unique.read_bytes as f64),
        show_bytes(unique.written_bytes as f64),
        show_bytes(unique.both_bytes as f64)
    ));
    if unique.mapped_bytes > 0 {
        line(format!("{} touched through mappings", show_bytes(unique.mapped_bytes as f64)));
    }
    line(format!(
        "{} events lost; {} of what the kernel counted is unexplained",
        app.lost,
        show_percent(app.unexplained_fraction)
    ));
}

fn sizes(page: &mut Page, whole: &Behaviour) {
    for (title, law) in
        [("Sizes of reads", &whole.sizes.read), ("Sizes of writes", &whole.sizes.write)]
    {
        let total: u64 = law.histogram.iter().map(|size| size.count).sum();
        if total == 0 {
            continue;
        }
        page.heading(&format!("{title} (mean {})", show_bytes(law.mean_bytes)));
        for (bytes, count) in doublings(law) {
            let share = count as f64 / total as f64;
            page.raw(format!(
                "  {:>9} {:>6} {}",
                show_size(bytes as f64),
                show_percent(share),
                bar(share)
            ));
        }
    }
    if whole.requests > 0 {
        let text =
            format!("standard deviation {} of the mean", three_digits(whole.sizes.variation));
        page.wrapped("  ", &text, Style::Dim);
    }
}

/// Requests by doubling of size, the most frequent ones.
fn doublings(law: &SizeLaw) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for size in &law.histogram {
        let from = if size.bytes == 0 { 0 } else { 1 << size.bytes.ilog2() };
        match all.last_mut() {
            Some((bytes, count)) if *bytes == from => *count += size.count,
            _ => all.push((from, size.count)),
        }
    }
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all.truncate(BARS_MAX);
    all.sort_unstable();
    all
}

fn bar(share: f64) -> String {
    const PARTS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * BAR_COLUMNS * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.push(PARTS[eighths % 8]);
    bar
}

fn order(page: &mut Page, whole: &Behaviour) {
    if whole.requests == 0 {
        return;
    }
    let sequence = &whole.sequence;
    page.heading("Order");
    let mut line = |text: String| page.wrapped("  ", &text, Style::Plain);
    line(format!(
        "runs of {} requests and {}; {} go a little forward, {} back, {} by a fixed stride",
        three_digits(sequence.run_requests_mean),
        show_bytes(sequence.run_bytes_mean),
        show_percent(sequence.forward_frac),
        show_percent(sequence.backward_frac),
        show_percent(sequence.strided_frac)
    ));
    if let Some(transaction) = &whole.order.transaction {
        line(format!(
            "a sequence of {} calls comes again and again ({} alike): {}",
            transaction.calls,
            show_percent(transaction.likeness),
            transaction.steps.join(", ")
        ));
    }
}

fn time(page: &mut Page, whole: &Behaviour) {
    page.heading("Time");
    let concurrency = &whole.concurrency;
    let mut line = |text: String| page.wrapped("  ", &text, Style::Plain);
    line(format!(
        "{} calls in progress while any is; {} streams made requests, {} in flight each; {} direct",
        three_digits(concurrency.busy),
        concurrency.streams,
        concurrency.depth.max(1),
        show_percent(concurrency.direct_frac)
    ));
    let slope = whole.arriving.slope.map_or(String::new(), |slope| {
        format!(" (a second longer delays the next by {} s)", three_digits(slope))
    });
    line(match whole.arrivals {
        Loop::Closed => format!("closed loop: a request waits for the one before{slope}"),
        Loop::Open => format!(
            "open loop: {} requests/s come whatever became of those before{slope}",
            three_digits(whole.arriving.rate_per_s)
        ),
    });
    let think = &whole.think;
    let processor = think.processor_mean_s.map_or(String::new(), |seconds| {
        format!(", {} of it on a processor", show_seconds(seconds))
    });
    line(format!(
        "between calls {} on average{processor}; half below {}, one in ten above {}",
        show_seconds(think.mean_s),
        show_seconds(think.p50_s),
        show_seconds(think.p90_s)
    ));
}

fn durability(page: &mut Page, whole: &Behaviour) {
    let syncs = &whole.syncs;
    page.heading("Durability");
    if syncs.count == 0 && syncs.sync_writes == 0 {
        page.raw("  no syncs".to_owned());
        return;
    }
    let every = match syncs.every {
        0 => String::new(),
        1 => "; one after each write".to_owned(),
        n => format!("; one after every {n} writes"),
    };
    page.wrapped(
        "  ",
        &format!("{} syncs, {} per write{every}", syncs.count, three_digits(syncs.per_write)),
        Style::Plain,
    );
    if syncs.sync_writes > 0 {
        page.raw(format!("  {} writes durable by O_SYNC or O_DSYNC", syncs.sync_writes));
    }
    for (kind, of_kind) in &syncs.by_kind {
        let took = of_kind.mean_s.map_or(String::new(), |s| format!(", {}", show_seconds(s)));
        page.raw(format!(
            "  {kind:<12} {:>8}  {} dirty pages in {} pieces{took}",
            of_kind.count,
            three_digits(of_kind.pages_mean),
            three_digits(of_kind.extents_mean)
        ));
    }
}

fn names(page: &mut Page, whole: &Behaviour) {
    let mut all: Vec<(&str, u64)> =
        whole.operations.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    if all.is_empty() {
        return;
    }
    page.heading("Calls");
    all.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let most = all[0].1.max(1) as f64;
    for (name, count) in all.iter().take(LISTED_MAX) {
        page.raw(format!("  {name:<10} {count:>10} {}", bar(*count as f64 / most)));
    }
    let metadata = &whole.metadata;
    let per_mb = metadata
        .per_mb
        .map_or(String::new(), |per_mb| format!(", {} per MB", three_digits(per_mb)));
    page.wrapped(
        "  ",
        &format!(
            "calls on names: {} per second{per_mb}; {} in the directory of the one before",
            three_digits(metadata.per_s),
            show_percent(metadata.same_directory_frac)
        ),
        Style::Plain,
    );
}

fn phases(page: &mut Page, app: &App) {
    if app.phases.is_empty() {
        return;
    }
    page.heading("Phases");
    page.raw(format!(
        "  {:>8} {:>8}  {:>10} {:>10} {:>6} {:>6} {:>4} {:>8}",
        "from", "lasts", "unique", "size", "reads", "seq", "proc", "syncs"
    ));
    for phase in &app.phases {
        let (behaviour, five) = (&phase.behaviour, &phase.behaviour.five);
        page.raw(format!(
            "  {:>8} {:>8}  {:>10} {:>10} {:>6} {:>6} {:>4} {:>8}",
            show_seconds(phase.from_s),
            show_seconds(behaviour.elapsed_s),
            show_bytes(five.unique_bytes as f64),
            show_bytes(five.size_mean),
            fraction(five.read_frac),
            fraction(five.seq_frac),
            five.process_num,
            behaviour.syncs.count
        ));
    }
}

fn shares(page: &mut Page, whole: &Behaviour) {
    let bytes = (whole.bytes_read + whole.bytes_written).max(1) as f64;
    if !whole.files.is_empty() {
        page.heading("Files by class");
        for class in whole.files.iter().take(LISTED_MAX) {
            let share = (class.bytes_read + class.bytes_written) as f64 / bytes;
            page.raw(format!(
                "  {:<16} {:>7} files {:>10} read {:>10} written {}",
                class.class,
                class.files,
                show_bytes(class.bytes_read as f64),
                show_bytes(class.bytes_written as f64),
                show_percent(share)
            ));
        }
    }
    if whole.streams.len() > 1 {
        page.heading("Streams");
        for (at, stream) in whole.streams.iter().enumerate() {
            page.raw(format!(
                "  {:>2}  {:>9} requests {:>10} read {:>10} written {:>7} syncs, busy {}",
                at + 1,
                stream.requests,
                show_bytes(stream.bytes_read as f64),
                show_bytes(stream.bytes_written as f64),
                stream.syncs,
                show_seconds(stream.busy_s)
            ));
        }
    }
}

fn fraction(value: f64) -> String {
    format!("{value:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_typed_by_hand_is_told_without_what_it_does_not_say() {
        let text = r#"{"elapsed_s": 60, "five": {"unique_bytes": 1048576, "size_mean": 8192,
            "read_frac": 0.7, "seq_frac": 0.1, "process_num": 4}}"#;
        let told = application_text(&App::parse(text).unwrap(), 80, false);
        assert!(told.starts_with("The five parameters\n  unique_bytes    1.00 MiB"), "{told}");
        assert!(!told.contains("NaN") && !told.contains("Sizes of"), "{told}");
    }

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(bar(1.0).trim_end().chars().count(), 30);
        assert_eq!(bar(0.0).trim(), "");
        assert_eq!(bar(0.5).chars().filter(|c| *c == '█').count(), 15);
    }
}
