//! Traces of every version that was handed out open for ever: one of each is kept, made by a build that
//! wrote it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use ioscape_trace::{Store, character};

#[test]
fn a_trace_of_version_1_holds_what_it_held() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/old/v1.trace");
    let store = Store::open(File::open(kept).unwrap()).unwrap();
    assert_eq!((store.events_count(), store.info().recorder.as_str()), (47, "strace"));
    let mut operations = BTreeMap::new();
    let mut count = |event: &ioscape_trace::Event| {
        *operations.entry(event.op.name()).or_insert(0) += 1;
        Ok(())
    };
    store.for_each_event(&mut count).unwrap();
    let some = ["READ", "WRITE", "DSYNC", "SYNC", "RENAME", "WAIT"].map(|op| operations[op]);
    assert_eq!(some, [4, 7, 3, 1, 1, 10]);
    let app = character::characterise(&store, &mut |_| {}).unwrap();
    assert_eq!((app.whole.bytes_read, app.whole.bytes_written), (1750, 15_111));
    assert_eq!((app.whole.syncs.count, app.whole.five.unique_bytes), (4, 24_576));
}
