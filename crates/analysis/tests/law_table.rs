//! The table of the law's parameters in the documentation is the one that is fitted.

use ioscape_analysis::model::blend::table;

#[test]
fn the_methods_chapter_shows_the_parameters_that_are_fitted() {
    let method = include_str!("../../../docs/method.md");
    let table = table();
    assert!(method.contains(&table), "put this into chapter 9 of docs/method.md:\n{table}");
}
