//! `cargo xtask wasm` makes the module of WebAssembly that pages carry anew; `cargo xtask dist`
//! makes binaries and packages.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in a workspace");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["wasm"] => xtask::wasm::build(root),
        #[cfg(feature = "dist")]
        ["dist", ref rest @ ..] => xtask::dist::run(root, rest),
        _ => Err(std::io::Error::other("there are two tasks: cargo xtask wasm, cargo xtask dist")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(std::io::stderr(), "error: {error}").ok();
            ExitCode::FAILURE
        }
    }
}
