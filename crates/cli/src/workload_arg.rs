//! Workloads as they are typed: `key=value` pairs, `@FILE.toml`, a name, and flags over all that.

use std::collections::BTreeMap;
use std::path::Path;

use ioscape_analysis::predict::Predictor;
use ioscape_model::app::{App, Behaviour};
use ioscape_model::{Access, Workload, WorkloadError, datasheet, named};
use ioscape_trace::character;
use toml::{Spanned, Value};

use crate::args::WorkloadArgs;
use crate::exit::usage;
use crate::text_file;

/// A workload and what to call it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    /// A named workload's name or a table's; what was typed, or the literal, otherwise.
    pub(crate) name: String,
    /// The workload, flags included.
    pub(crate) work: Workload,
    /// Whether `access` was given.
    pub(crate) says_access: bool,
}

/// Workloads as a map takes them: what says nothing of access has the map's own.
///
/// # Errors
/// One line, where the map knows nothing of a key that was given.
pub(crate) fn of_map(
    mut all: Vec<Asked>,
    record: &Path,
    predictor: &Predictor,
) -> anyhow::Result<Vec<Asked>> {
    for asked in &mut all {
        if !asked.says_access {
            asked.work.access = predictor.access();
            asked.says_access = true; // the first of several maps says it for all
        }
        if let Some(why) = predictor.refuses(&asked.work) {
            return Err(usage(format!("{}: {why}", record.display())));
        }
    }
    Ok(all)
}

/// Reads one workload; flags override what the text says.
pub(crate) fn read(text: Option<&str>, flags: &WorkloadArgs) -> anyhow::Result<Workload> {
    let texts: Vec<String> = text.map(str::to_owned).into_iter().collect();
    let mut asked = parse_all(&texts, flags)?;
    match (asked.pop(), asked.is_empty()) {
        (Some(only), true) => Ok(only.work),
        _ => Err(usage(format!(
            "{} holds several workloads, and one is measured at a time",
            text.unwrap_or_default()
        ))),
    }
}

/// Reads workloads of closed loops, in the order asked, those of a file in the file's order; flags
/// override keys in all of them. Without texts the flags alone say one.
pub(crate) fn read_all(texts: &[String], flags: &WorkloadArgs) -> anyhow::Result<Vec<Asked>> {
    let all = parse_all(texts, flags)?;
    for asked in &all {
        refuse_open(&asked.work).map_err(usage)?;
    }
    Ok(all)
}

/// Reads workloads of closed and open loops, in the order asked; flags override keys as above.
pub(crate) fn parse_all(texts: &[String], flags: &WorkloadArgs) -> anyhow::Result<Vec<Asked>> {
    if texts.is_empty() {
        return Ok(vec![asked(None, &[], flags).map_err(usage)?]);
    }
    let mut all = Vec::new();
    for text in texts {
        match text.strip_prefix('@') {
            Some(path) => all.extend(from_file(path, flags)?),
            None => all.push(from_text(text, flags)?),
        }
    }
    Ok(all)
}

/// The named workloads, in their order.
pub(crate) fn ladder() -> Vec<Asked> {
    let asked = |name: &str| {
        let work = named::named(name)?;
        Some(Asked { name: name.to_owned(), work, says_access: false })
    };
    named::names().filter_map(asked).collect()
}

fn from_text(text: &str, flags: &WorkloadArgs) -> anyhow::Result<Asked> {
    if text.trim().is_empty() {
        return Err(usage(
            "-w is empty: write key=value pairs or a name, or leave it out for the defaults",
        ));
    }
    if text.contains('=') {
        let mut pairs = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let not_a_pair = || usage(WorkloadError::NotAPair(pair.to_owned()).to_string());
            let (key, value) = pair.split_once('=').ok_or_else(not_a_pair)?;
            pairs.push((key.trim().to_owned(), value.trim().to_owned()));
        }
        let name = flags.pairs().is_empty().then(|| text.trim().to_owned());
        return asked(name, &pairs, flags).map_err(usage);
    }
    let work = named::named(text).ok_or_else(|| {
        usage(format!(
            "no workload is called `{text}`; write key=value pairs or one of {}",
            named::names()
                .chain(named::neighbours())
                .chain(datasheet::names())
                .collect::<Vec<_>>()
                .join(", ")
        ))
    })?;
    let over = flags.pairs();
    let names_access = work.access == Access::Direct;
    let says_access = names_access || over.iter().any(|(key, _)| *key == "access");
    let work = work.with_pairs(over).map_err(|error| usage(error.to_string()))?;
    Ok(Asked { name: text.to_owned(), work, says_access })
}

/// `key = value` lines are one workload; tables of them are one each.
fn from_file(path: &str, flags: &WorkloadArgs) -> anyhow::Result<Vec<Asked>> {
    let wrong = |what: String| usage(format!("{path}: {}", what.replace('\n', " ")));
    let text = text_file::read(Path::new(path), text_file::TYPED_BYTES_MAX).map_err(wrong)?;
    if text.trim_start().starts_with('{') {
        return of_model(&text, flags).map_err(wrong);
    }
    all_of(&text, flags).map_err(wrong)
}

/// The phases of an application model as workloads that a map can tell of: the five parameters,
/// requests in flight and syncs.
fn of_model(text: &str, flags: &WorkloadArgs) -> Result<Vec<Asked>, String> {
    let app = App::parse(text).map_err(|error| error.to_string())?;
    let over = flags.pairs();
    let says_access = over.iter().any(|(key, _)| *key == "access");
    let stretches = app.stretches();
    let asked = |(at, stretch): (usize, &&Behaviour)| {
        let usual = Workload::default();
        let work = Workload {
            size_dist: usual.size_dist,
            access: usual.access,
            rate: usual.rate,
            arrivals: usual.arrivals,
            ..character::workload(stretch)
        };
        let align = work.align.to_string();
        let is_aligned = over.iter().any(|(key, _)| *key == "align");
        let own = (!is_aligned).then_some(("align", align.as_str()));
        let pairs = own.into_iter().chain(over.iter().copied());
        let work = work.with_pairs(pairs).map_err(|error| error.to_string())?;
        let name = if stretches.len() > 1 { format!("phase-{}", at + 1) } else { "app".to_owned() };
        Ok(Asked { name, work, says_access })
    };
    stretches.iter().enumerate().map(asked).collect()
}

/// The workloads of a file's text.
pub(crate) fn all_of(text: &str, flags: &WorkloadArgs) -> Result<Vec<Asked>, String> {
    let entries: BTreeMap<String, Spanned<Value>> =
        toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())?;
    let mut entries: Vec<(String, Spanned<Value>)> = entries.into_iter().collect();
    if entries.is_empty() {
        return Err("it holds no workload: write key = value lines, or tables of them".to_owned());
    }
    entries.sort_by_key(|(_, value)| value.span().start);
    let is_table = |value: &Spanned<Value>| matches!(value.get_ref(), Value::Table(_));
    if !entries.iter().any(|(_, value)| is_table(value)) {
        let pairs = entries.iter().map(|(key, value)| (key.clone(), plain(value.get_ref())));
        return Ok(vec![asked(None, &pairs.collect::<Vec<_>>(), flags)?]);
    }
    let mut all = Vec::new();
    for (name, value) in entries {
        let Value::Table(table) = value.get_ref() else {
            return Err(format!("`{name}` stands outside the tables: move it into one"));
        };
        let pairs: Vec<(String, String)> =
            table.iter().map(|(key, value)| (key.clone(), plain(value))).collect();
        let named = asked(Some(name.clone()), &pairs, flags);
        all.push(named.map_err(|what| format!("[{name}]: {what}"))?);
    }
    Ok(all)
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(word) => word.clone(),
        other => other.to_string(),
    }
}

/// What is wrong with it is one line.
fn asked(
    name: Option<String>,
    pairs: &[(String, String)],
    flags: &WorkloadArgs,
) -> Result<Asked, String> {
    let over = flags.pairs();
    let is_overridden = |key: &str| over.iter().any(|(other, _)| *other == key);
    let kept = pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let kept = kept.filter(|(key, _)| !is_overridden(key));
    let work = Workload::from_pairs(kept.chain(over.iter().copied()))
        .map_err(|error| error.to_string())?;
    let typed = pairs.iter().map(|(key, _)| key.as_str()).chain(over.iter().map(|(key, _)| *key));
    let says_access = typed.into_iter().any(|key| key == "access");
    Ok(Asked { name: name.unwrap_or_else(|| work.literal()), work, says_access })
}

/// Refuses an open loop, which has no throughput of its own to compare.
fn refuse_open(work: &Workload) -> Result<(), String> {
    if work.rate == 0.0 {
        return Ok(());
    }
    Err("rate: here requests follow each other as fast as they can; leave the key out, or ask \
         `ioscape predict` for the latency at a rate, and `ioscape measure` to measure it"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn flags(key: &str, value: &str) -> WorkloadArgs {
        use clap::Parser;
        let flag = format!("--{}", key.replace('_', "-"));
        let cli = crate::command::Cli::parse_from(["ioscape", "measure", ".", &flag, value]);
        match cli.command {
            crate::command::Command::Measure(args) => args.keys,
            _ => unreachable!("measure was typed"),
        }
    }

    #[test]
    fn a_flag_overrides_what_the_text_says() {
        let work = read(Some("read_frac=0.2,seq_frac=0"), &flags("read_frac", "1")).unwrap();
        assert_eq!((work.read_frac, work.seq_frac), (1.0, 0.0));
        let work = read(Some("oltp"), &flags("process_num", "2")).unwrap();
        assert_eq!((work.size_mean, work.process_num), (8192, 2));
    }

    #[test]
    fn a_toml_file_holds_the_same_keys() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "unique_bytes = \"1GiB\"\nread_frac = 0.25\n").unwrap();
        let text = format!("@{}", file.path().display());
        let work = read(Some(&text), &flags("seq_frac", "0")).unwrap();
        assert_eq!((work.unique_bytes, work.read_frac), (1 << 30, 0.25));
    }

    #[test]
    fn the_phases_of_a_model_are_workloads() {
        let text = r#"{"phases": [
            {"five": {"unique_bytes": 67108864, "size_mean": 8192, "read_frac": 0.7, "process_num": 2}},
            {"five": {"unique_bytes": 4096, "size_mean": 65536}, "arrivals": "open",
             "arriving": {"rate_per_s": 10}, "syncs": {"every": 4}}]}"#;
        let (_file, typed) = file(text);
        let all = read_all(&[typed], &WorkloadArgs::default()).unwrap();
        let names: Vec<&str> = all.iter().map(|asked| asked.name.as_str()).collect();
        assert_eq!(names, ["phase-1", "phase-2"]);
        assert_eq!((all[0].work.size_mean, all[0].work.process_num), (8192, 2));
        assert_eq!((all[1].work.fsync_every, all[1].work.unique_bytes), (4, 8 * 65536));
        assert!(all.iter().all(|asked| asked.work.check().is_ok()));
    }

    fn file(text: &str) -> (tempfile::NamedTempFile, String) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        let typed = format!("@{}", file.path().display());
        (file, typed)
    }

    #[test]
    fn a_file_may_hold_several_workloads_in_its_own_order() {
        let (_file, typed) = file(
            "[zebra]\nunique_bytes = \"32MiB\"\n\n[ant]\nread_frac = 1\nunique_bytes = 67108864\n",
        );
        let texts = [typed.clone(), "mail".to_owned(), "read_frac=0.3".to_owned()];
        let all = read_all(&texts, &flags("seq_frac", "0")).unwrap();
        let names: Vec<&str> = all.iter().map(|asked| asked.name.as_str()).collect();
        assert_eq!(names[..3], ["zebra", "ant", "mail"]);
        assert!(names[3].contains("read_frac=0.3,seq_frac=0"), "{}", names[3]);
        assert_eq!((all[0].work.unique_bytes, all[1].work.read_frac), (32 << 20, 1.0));
        assert!(all.iter().all(|asked| asked.work.seq_frac == 0.0));
        let error = read(Some(&typed), &flags("seq_frac", "0")).unwrap_err();
        assert!(error.to_string().contains("several workloads"), "{error}");
    }

    #[test]
    fn what_is_wrong_in_a_file_is_said_in_one_line() {
        for (text, part) in [
            ("[a]\nread_frac = 2\n", "[a]: read_frac=2"),
            ("read_frac = 1\n[a]\n", "`read_frac` stands outside"),
            ("[a]\nfrac = 1\n", "unknown key `frac`"),
            ("[a]\nstate = \"\"\"\nx\n\"\"\"\n", "one of warm, cold"),
            ("[a\n", "@"),
            ("[a]\n[a]\n", "@"),
            ("# nothing\n", "holds no workload"),
        ] {
            let (kept, typed) = file(text);
            let path = kept.path().display().to_string();
            let error = read(Some(&typed), &flags("seq_frac", "0")).unwrap_err().to_string();
            let part = if part == "@" { &path } else { part };
            assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn the_ladder_has_all_named_workloads() {
        let names: Vec<String> = ladder().into_iter().map(|asked| asked.name).collect();
        assert_eq!(names, named::names().collect::<Vec<_>>());
    }

    #[test]
    fn what_this_build_cannot_do_is_said() {
        let texts = ["rate=400".to_owned()];
        let error = read_all(&texts, &flags("seq_frac", "0")).unwrap_err();
        assert!(error.to_string().contains("as fast as they can"), "{error}");
        assert_eq!(read(Some("depth=4"), &flags("seq_frac", "0")).unwrap().depth, 4);
        let error = read(Some("oltpp"), &flags("seq_frac", "0")).unwrap_err();
        assert!(error.to_string().contains("one of compile"), "{error}");
    }
}
