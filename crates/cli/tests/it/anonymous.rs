//! A thousand secrets in all that a recorded program and imported traces name, of which none gets out.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ioscape_test_support::skipped;
use ioscape_trace::{Event, FileEntry, Sink, Store, StreamEntry, TraceInfo};

use crate::workdir::Workdir;

/// Words that stand nowhere else, drawn from a counter: eleven letters each.
struct Secrets {
    all: Vec<String>,
    state: u64,
}

impl Secrets {
    fn new() -> Self {
        Self { all: Vec::new(), state: 20_261_124 }
    }

    fn one(&mut self) -> String {
        let mut secret = String::new();
        for _ in 0..11 {
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            secret.push((b'a' + ((self.state >> 33) % 26) as u8) as char);
        }
        self.all.push(secret.clone());
        secret
    }
}

/// All text of a trace, which lies compressed in its file.
#[derive(Default)]
struct Text(String);

impl Sink for Text {
    fn event(&mut self, _: &Event) -> std::io::Result<()> {
        Ok(())
    }

    fn file(&mut self, file: FileEntry) -> std::io::Result<()> {
        let _ = writeln!(self.0, "{file:?}");
        Ok(())
    }

    fn stream(&mut self, stream: StreamEntry) -> std::io::Result<()> {
        let _ = writeln!(self.0, "{stream:?}");
        Ok(())
    }

    fn finish(&mut self, info: &TraceInfo) -> std::io::Result<()> {
        let _ = writeln!(self.0, "{info:?}");
        Ok(())
    }
}

/// Everything that leaves of a trace: itself, its description, its model, its page, its exports.
fn everything(work: &Workdir, trace: &str) -> Vec<(String, Vec<u8>)> {
    let mut text = Text::default();
    Store::open(File::open(work.path(trace)).unwrap()).unwrap().pour(&mut text).unwrap();
    let mut all = vec![("the trace's tables".to_owned(), text.0.into_bytes())];
    let mut add = |name: &str, bytes: Vec<u8>| all.push((format!("{trace}: {name}"), bytes));
    add("the file", fs::read(work.path(trace)).unwrap());
    for command in [&["show"][..], &["show", "--json"], &["model"], &["caches", "--policy", "lru"]]
    {
        let command = [&["trace", command[0], trace], &command[1..]].concat();
        add(&command.join(" "), work.stdout(&command).into_bytes());
    }
    work.stdout(&["trace", "show", trace, "--report", "page.html"]);
    add("the page", fs::read(work.path("page.html")).unwrap());
    fs::remove_file(work.path("page.html")).unwrap();
    for format in ["fio", "iolog", "oracle", "csv"] {
        work.stdout(&["trace", "export", trace, "--format", format, "-o", "exported"]);
        add(format, fs::read(work.path("exported")).unwrap());
        fs::remove_file(work.path("exported")).unwrap();
    }
    all
}

/// Secrets that stand somewhere, and where. All have eleven letters, so one pass finds them.
fn found(secrets: &Secrets, all: &[(String, Vec<u8>)]) -> BTreeSet<(String, String)> {
    let known: BTreeSet<&[u8]> = secrets.all.iter().map(String::as_bytes).collect();
    let mut found = BTreeSet::new();
    for (place, bytes) in all {
        for secret in bytes.windows(11).filter(|window| known.contains(window)) {
            found.insert((String::from_utf8_lossy(secret).into_owned(), place.clone()));
        }
    }
    found
}

/// A program that writes, reads, renames, links and removes secrets, below a directory with a secret.
fn script(secrets: &mut Secrets) -> String {
    let home = secrets.one();
    let mut script = format!("mkdir {home}; cd {home}\n");
    for number in 0..140 {
        let (name, content, link) = (secrets.one(), secrets.one(), secrets.one());
        let class = ["log", "db", "text"][number % 3];
        let _ = writeln!(
            script,
            "echo key-{content} > {name}.{class}; ln -s {name} {link}; : < {name}.{class}"
        );
    }
    for _ in 0..140 {
        let (missing, word) = (secrets.one(), secrets.one());
        let _ = writeln!(script, "[ -e {missing} ]; echo {word} >> one; read line < one");
    }
    let (from, to) = (secrets.one(), secrets.one());
    let _ =
        writeln!(script, "mkdir {from}; mv {from} {to}; rmdir {to}; cat * > all 2>/dev/null; true");
    script
}

#[test]
fn no_secret_of_a_recorded_program_gets_out() {
    let work = Workdir::new();
    let mut secrets = Secrets::new();
    fs::write(work.path("script"), script(&mut secrets)).unwrap();
    let (user, machine) = (secrets.one(), secrets.one());
    let mut command = work.command(&["trace", "record", "-o", "app.trace", "--", "sh", "script"]);
    command.env("USER", &user).env("LOGNAME", &user).env("HOSTNAME", &machine);
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        let recording = command.get_args().map(|word| word.to_string_lossy().into_owned());
        let recording: Vec<String> = recording.collect();
        let binary = command.get_program().to_owned();
        let mut renamed = std::process::Command::new("unshare");
        let line = format!("hostname {machine}; exec \"$@\"");
        renamed.args(["--uts", "sh", "-c", &line, "sh"]).arg(binary).args(recording);
        renamed.current_dir(work.path("")).env("USER", &user).env("LOGNAME", &user);
        command = renamed;
    } else {
        skipped("the machine keeps its name without root");
    }
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let mut all = everything(&work, "app.trace");
    all.push(("what is said".to_owned(), output.stderr));
    let leaks = found(&secrets, &all);
    assert!(leaks.is_empty(), "{leaks:?}");
    assert!(secrets.all.len() >= 700, "{}", secrets.all.len());
    // With --names they are there: the search finds what there is.
    let named = ["trace", "record", "--names", "-o", "named.trace", "--", "sh", "script"];
    fs::remove_dir_all(work.path(&secrets.all[0])).unwrap();
    work.stdout(&named);
    assert!(found(&secrets, &everything(&work, "named.trace")).len() > 140);
}

/// Traces of others, with a secret wherever one may stand.
fn imported(secrets: &mut Secrets, directory: &Path) -> [(&'static str, &'static str); 3] {
    let mut strace = String::new();
    let mut msr = String::new();
    let mut iolog = "fio version 2 iolog\n".to_owned();
    for number in 0..100_u64 {
        let (path, data) = (secrets.one(), secrets.one());
        let at = 1_700_000_000.0 + number as f64 * 0.001;
        let _ = writeln!(
            strace,
            "7 {at:.6} openat(AT_FDCWD, \"/home/{path}\", O_RDWR) = 3</home/{path}> <0.000010>\n\
             7 {at:.6} write(3</home/{path}>, \"{data}\", 11) = 11 <0.000010>"
        );
        let host = secrets.one();
        let time = 128_166_372_000_000_000 + number * 1000;
        let _ = writeln!(msr, "{time},{host},0,Read,{},4096,100", number * 4096);
        let file = secrets.one();
        let _ = writeln!(iolog, "/data/{file} add\n/data/{file} open\n/data/{file} read 0 4096");
    }
    for (name, text) in [("strace", strace), ("msr", msr), ("iolog", iolog)] {
        fs::write(directory.join(name), text).unwrap();
    }
    [("strace", "strace"), ("msr", "msr"), ("fio-iolog", "iolog")]
}

#[test]
fn no_secret_of_an_imported_trace_gets_out() {
    let work = Workdir::new();
    let mut secrets = Secrets::new();
    for (format, file) in imported(&mut secrets, &work.path("")) {
        let trace = format!("{format}.trace");
        work.stdout(&["trace", "import", format, file, "-o", &trace]);
        let leaks = found(&secrets, &everything(&work, &trace));
        assert!(leaks.is_empty(), "{format}: {leaks:?}");
    }
    assert!(secrets.all.len() >= 400, "{}", secrets.all.len());
}
