//! A workload as it is typed: `key=value` pairs, `@file.toml`, a name, and flags over all that.

use std::fs;

use ioscape_model::{Access, Workload, WorkloadError, named};

use crate::args::WorkloadArgs;
use crate::exit::usage;

/// Reads a workload; flags override what the text says.
pub(crate) fn read(text: Option<&str>, flags: &WorkloadArgs) -> anyhow::Result<Workload> {
    let base = match text {
        None => String::new(),
        Some(text) => match text.strip_prefix('@') {
            Some(path) => from_file(path)?,
            None => from_name(text)?,
        },
    };
    let overridden = flags.pairs();
    let is_overridden = |pair: &&str| {
        pair.split_once('=')
            .is_some_and(|(key, _)| overridden.iter().any(|(k, _)| *k == key.trim()))
    };
    let mut pairs: Vec<String> =
        base.split(',').filter(|pair| !is_overridden(pair)).map(str::to_owned).collect();
    pairs.extend(overridden.iter().map(|(key, value)| format!("{key}={value}")));
    let work = Workload::parse(&pairs.join(",")).map_err(|error| usage(error.to_string()))?;
    supported(&work)?;
    Ok(work)
}

fn from_name(text: &str) -> anyhow::Result<String> {
    if text.is_empty() || text.contains('=') {
        return Ok(text.to_owned());
    }
    let names = || named::names().collect::<Vec<_>>().join(", ");
    named::named(text).map(|work| work.literal()).ok_or_else(|| {
        usage(format!(
            "no workload is called `{text}`; write key=value pairs or one of {}",
            names()
        ))
    })
}

fn from_file(path: &str) -> anyhow::Result<String> {
    let text = fs::read_to_string(path).map_err(|error| usage(format!("{path}: {error}")))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        usage(format!("{path}: {}", error.message().replace('\n', " ")))
    })?;
    let value = |value: &toml::Value| match value {
        toml::Value::String(word) => word.clone(),
        other => other.to_string(),
    };
    let pairs: Vec<String> = table.iter().map(|(key, v)| format!("{key}={}", value(v))).collect();
    Ok(pairs.join(","))
}

/// What this build's engines can do.
fn supported(work: &Workload) -> anyhow::Result<()> {
    let refused = [
        (work.depth != 1, "depth above 1"),
        (work.access == Access::Direct, "access=direct"),
        (work.fsync_every != 0, "fsync_every"),
        (work.rate != 0.0, "rate"),
    ];
    match refused.into_iter().find(|(asked, _)| *asked) {
        Some((_, what)) => Err(usage(WorkloadError::NotYet(what.to_owned()).to_string())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(key: &str, value: &str) -> WorkloadArgs {
        use clap::Parser;
        let flag = format!("--{}", key.replace('_', "-"));
        let cli = crate::args::Cli::parse_from(["ioscape", "measure", ".", &flag, value]);
        match cli.command {
            crate::args::Command::Measure(args) => args.keys,
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
    fn what_this_build_cannot_do_is_said() {
        let error = read(Some("depth=4"), &flags("seq_frac", "0")).unwrap_err();
        assert!(error.to_string().contains("depth above 1 is not supported"), "{error}");
        let error = read(Some("oltpp"), &flags("seq_frac", "0")).unwrap_err();
        assert!(error.to_string().contains("one of compile"), "{error}");
    }
}
