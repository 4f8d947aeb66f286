use super::*;

#[test]
fn missing_keys_have_the_defaults() {
    assert_eq!(Workload::parse("").unwrap(), Workload::default());
    let work = Workload::parse("unique_bytes=1GiB, read_frac=1").unwrap();
    assert_eq!(work, Workload { unique_bytes: 1 << 30, read_frac: 1.0, ..Workload::default() });
}

#[test]
fn align_follows_a_small_fixed_size() {
    let align = |text: &str| Workload::parse(text).unwrap().align;
    assert_eq!(align("size_mean=512,size_dist=fixed"), 512);
    assert_eq!(align("size_mean=64k,size_dist=fixed"), 4096);
    assert_eq!(align("size_mean=64k"), 4096);
    assert_eq!(align("size_mean=64k,align=512"), 512);
}

#[test]
fn what_cannot_be_is_refused_with_one_line() {
    for (text, part) in [
        ("read_frac=1.5", "from 0 to 1"),
        ("read_frac=nan", "from 0 to 1"),
        ("unique_byts=1M", "unknown key `unique_byts`"),
        ("unique_bytes=1MiB,size_mean=1MiB", "8 mean requests"),
        ("process_num=0", "1 to 4096"),
        ("size_dist=zipf", "one of normal, fixed, exponential"),
        ("read_frac=1,read_frac=0", "given twice"),
        ("read_frac", "not key=value"),
        ("align=3000", "power of two"),
        ("size_mean=2k", "at least align"),
    ] {
        let message = Workload::parse(text).unwrap_err().to_string();
        assert!(message.contains(part), "{text}: {message}");
        assert!(!message.contains('\n'));
    }
}

#[test]
fn a_literal_reads_back_as_the_same_workload() {
    for text in [
        "unique_bytes=1GiB,size_mean=512,size_dist=fixed,state=cold",
        "read_frac=0.25,seq_frac=1,process_num=3,layout=shared,seq_scope=direction",
        "depth=8,access=direct,fsync_every=4,rate=100,arrivals=poisson,align=8k",
    ] {
        let work = Workload::parse(text).unwrap();
        assert_eq!(Workload::parse(&work.literal()).unwrap(), work, "{work}");
    }
}

#[test]
fn unusual_pairs_are_those_besides_the_five_that_are_not_at_their_default() {
    let work = Workload::parse("read_frac=0.25,access=direct,depth=8").unwrap();
    let pairs: Vec<_> = work.unusual_pairs().collect();
    assert_eq!(pairs, [("depth", "8".to_owned()), ("access", "direct".to_owned())]);
    assert_eq!(Workload::default().unusual_pairs().count(), 0);
}

#[test]
fn json_holds_plain_numbers_and_reads_back() {
    let work = Workload::default();
    let json = serde_json::to_value(&work).unwrap();
    assert_eq!(json["unique_bytes"], 67_108_864);
    assert_eq!(json["state"], "warm");
    assert_eq!(serde_json::from_value::<Workload>(json).unwrap(), work);
}
