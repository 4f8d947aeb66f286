//! The terminal summary.

use ioscape_report::text;

use crate::fixture;

#[test]
fn whole() {
    println!("{}", text(&fixture::full(), 80, false));
    println!("{}", text(&fixture::measured(), 80, false));
    println!("{}", text(&fixture::empty(), 80, false));
}
