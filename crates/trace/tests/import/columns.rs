//! CSV and fio's logs.

use std::collections::BTreeSet;

use ioscape_trace::import::{Columns, Error, Format, Preset};
use ioscape_trace::{Event, FileKind, Flags, Layer, Op};

use crate::collected::{clean, fixture, read, rows};

fn brief(event: &Event) -> (u64, Op, u64, u64, Option<u64>) {
    (event.start_ns, event.op, event.offset, event.length, event.duration_ns)
}

fn all(preset: Preset, name: &str) -> Vec<(u64, Op, u64, u64, Option<u64>)> {
    clean(&Format::Preset(preset), name).events.iter().map(brief).collect()
}

#[test]
fn msr_counts_in_hundreds_of_nanoseconds() {
    let expected = [
        (0, Op::Read, 7_014_609_920, 24576, Some(4_128_600)),
        (1_332_052_600, Op::Write, 2_517_696_512, 4096, Some(8_126_400)),
        (2_332_061_100, Op::Read, 8192, 512, Some(500)),
        (2_332_061_600, Op::Write, 0, 8192, Some(10_000)),
    ];
    assert_eq!(all(Preset::Msr, "msr.csv"), expected);
    let trace = clean(&Format::Preset(Preset::Msr), "msr.csv");
    let names: Vec<_> = trace.files.values().map(|file| (file.path.clone(), file.kind)).collect();
    let volume = |name: &str| (Some(name.to_owned()), FileKind::Block);
    assert_eq!(names, [volume("usr/0"), volume("usr/1")]);
    assert_eq!(trace.info.unwrap().layer, Layer::Block);
}

#[test]
fn systor_has_a_header_and_commands_that_are_no_io() {
    let expected = [
        (0, Op::Read, 7_502_204_928, 4096, Some(323_000)),
        (609_000, Op::Write, 512, 512, Some(12_000_000)),
    ];
    assert_eq!(all(Preset::Systor, "systor.csv"), expected);
}

#[test]
fn alibaba_and_tencent_have_a_volume_for_each_address_space() {
    let alibaba = clean(&Format::Preset(Preset::Alibaba), "alibaba.csv");
    let files: Vec<u32> = alibaba.events.iter().map(|event| event.file).collect();
    assert_eq!((files[0], files[0] == files[1]), (files[2], false));
    assert_eq!(alibaba.events[2].start_ns, 374_000);
    let expected = [
        (0, Op::Read, 12_910_952 * 512, 65536, None),
        (0, Op::Write, 6_338_688 * 512, 4096, None),
        (1_000_000_000, Op::Write, 4096, 4096, None),
    ];
    assert_eq!(all(Preset::Tencent, "tencent.csv"), expected);
}

#[test]
fn fiu_and_spc_count_in_sectors() {
    let fiu = clean(&Format::Preset(Preset::Fiu), "fiu.txt");
    assert_eq!(brief(&fiu.events[1]), (39_064, Op::Write, 926_858_672 * 512, 4096, None));
    assert_eq!(fiu.streams.len(), 2);
    assert_eq!(fiu.path(fiu.events[2].file), "8/1");
    let spc = all(Preset::Spc, "spc.csv");
    assert_eq!(spc[1], (2_335_000, Op::Read, 20_939_840 * 512, 8192, None));
}

#[test]
fn a_map_reads_columns_wherever_they_are() {
    let map = |text| Format::Csv(Columns::parse(text).unwrap());
    let text =
        b"# remark\nop;who;where;n;ms\nwrite;7; 16 ;8;1.5\n\"read\";9;0;8;2.25\nflush;7;0;0;3\n";
    let (trace, summary) =
        read(&map("op=1,stream=2,off=3K,len=4sec,t=5ms,sep=;,skip=1"), &[text]).unwrap();
    assert_eq!((summary.malformed, summary.lines), (0, 3), "names of columns are no mistake");
    let expected = [
        (0, Op::Write, 16384, 4096, None),
        (750_000, Op::Read, 0, 4096, None),
        (1_500_000, Op::Flush, 0, 0, None),
    ];
    assert_eq!(trace.events.iter().map(brief).collect::<Vec<_>>(), expected);
    assert_eq!(trace.streams.len(), 2);
    let (trace, summary) = read(&map("off=1B,len=2B"), &[b"0,512\n512,512\n"]).unwrap();
    assert_eq!(trace.events[1].start_ns, 1, "without a clock lines keep their order");
    let limits = summary.info.limits.join(" ");
    assert!(limits.contains("no clock") && limits.contains("count as reads"), "{limits}");
}

#[test]
fn a_few_lines_may_be_wrong_and_are_shown() {
    let format = Format::Preset(Preset::Alibaba);
    let mut text: Vec<String> = (0..200).map(|n| format!("1,R,{},4096,{n}", n * 4096)).collect();
    for at in [50, 60, 70, 80] {
        text[at] = format!("1,R,what\u{7},4096,{at}");
    }
    let (trace, summary) = read(&format, &[text.join("\n").as_bytes()]).unwrap();
    assert_eq!((trace.events.len(), summary.malformed, summary.lines), (196, 4, 200));
    let shown: Vec<_> =
        summary.first_malformed.iter().map(|bad| (bad.line, &bad.text[..])).collect();
    assert_eq!(shown[0], (51, "1,R,what.,4096,50"));
    assert_eq!(shown.len(), 3);
    text[100..107].fill("nothing".to_owned());
    let error = read(&format, &[text.join("\n").as_bytes()]).err().unwrap();
    assert!(matches!(error, Error::OtherFormat { malformed: 11, lines: 200, .. }), "{error}");
    assert!(error.to_string().contains("file 0:51"), "{error}");
    assert!(matches!(read(&format, &[b""]), Err(Error::Empty(_))));
    let cut = b"1,R,0,1,1\n1,R,18446744073709551615,4096,1\n1,R,0,4096,18446744073709551615\n";
    assert!(matches!(read(&format, &[cut]), Err(Error::OtherFormat { malformed: 2, .. })));
}

#[test]
fn compressed_files_are_told_by_their_bytes() {
    let plain = clean(&Format::Preset(Preset::Msr), "msr.csv");
    for name in ["msr.csv.gz", "msr.csv.zst"] {
        assert_eq!(clean(&Format::Preset(Preset::Msr), name).events, plain.events, "{name}");
    }
    // Two members, two frames.
    for name in ["msr.csv.gz", "msr.csv.zst"] {
        let twice = [fixture(name), fixture(name)].concat();
        let (trace, _) = read(&Format::Preset(Preset::Msr), &[&twice]).unwrap();
        assert_eq!(trace.events.len(), 2 * plain.events.len(), "{name}");
    }
    for name in ["msr.csv.gz", "msr.csv.zst"] {
        let mut broken = fixture(name);
        broken.truncate(broken.len() - 20);
        let error = read(&Format::Preset(Preset::Msr), &[&broken]).err().unwrap();
        assert!(error.to_string().starts_with("cannot read file 0: "), "{error}");
    }
}

#[test]
fn volumes_in_files_of_their_own_are_merged_by_time() {
    let lines = |volume: u32, first: u64| {
        let line = |n: u64| format!("{volume},R,{},4096,{}\n", n * 4096, first + n * 10);
        (0..100).map(line).collect::<String>()
    };
    let (one, two) = (lines(1, 0), lines(2, 5));
    let files = [one.as_bytes(), two.as_bytes()];
    let (trace, _) = read(&Format::Preset(Preset::Alibaba), &files).unwrap();
    assert!(trace.events.is_sorted_by_key(|event| event.start_ns));
    assert_eq!(trace.events[..4].iter().map(|event| event.file).collect::<Vec<_>>(), [1, 2, 1, 2]);
}

#[test]
fn iolog_two_tells_time_by_waits() {
    let trace = clean(&Format::Iolog, "iolog2.txt");
    let path = "/mnt/job.0.0";
    let expected = [
        (0, Op::Open, path, 0, 0),
        (0, Op::Write, path, 0, 4096),
        (1000, Op::Read, path, 4096, 8192),
        (1500, Op::Dsync, path, 0, 0),
        (1500, Op::Close, path, 0, 0),
    ];
    assert_eq!(rows(&trace), expected);
    assert!(trace.events.iter().all(|event| event.handle == trace.events[0].handle));
    assert_eq!(trace.events[1].flags, Flags::default());
}

#[test]
fn iolog_three_has_time_in_each_line() {
    let trace = clean(&Format::Iolog, "iolog3.txt");
    let ops: Vec<_> = rows(&trace).iter().map(|row| (row.0, row.1, row.3, row.4)).collect();
    assert_eq!(ops[0], (0, Op::Open, 0, 0));
    assert_eq!(ops[2], (16, Op::Discard, 16384, 16384));
    assert_eq!(ops[5], (10_000_805, Op::Close, 0, 0));
}

#[test]
fn logs_that_fio_itself_wrote_are_read() {
    let trace = clean(&Format::Iolog, "iolog3-fio.txt");
    let count = |op| trace.events.iter().filter(|event| event.op == op).count();
    let counts = [Op::Read, Op::Write, Op::Dsync, Op::Open, Op::Close].map(count);
    assert_eq!(counts, [7, 5, 2, 1, 1]);
    // The job thought for 2 ms after each: the log counts microseconds.
    assert_eq!(trace.events[2].start_ns, 5_614_000);
    assert!((trace.info.unwrap().elapsed_s - 0.137_673).abs() < 1e-9);
}

#[test]
fn jobs_of_fio_are_streams() {
    let (two, three) = (fixture("iolog2.txt"), fixture("iolog2.txt"));
    let (trace, _) = read(&Format::Iolog, &[&two, &three]).unwrap();
    assert_eq!((trace.streams.len(), trace.events.len()), (2, 10));
    let handles: BTreeSet<u32> = trace.events.iter().map(|event| event.handle).collect();
    assert_eq!(handles.len(), 2);
}
