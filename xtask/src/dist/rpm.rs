//! A package for RPM. It is not compressed, which keeps a second compressor out of what is built.

use std::io;

use rpm::{BuildConfig, CompressionType, FileMode, FileOptions, PackageBuilder};

use super::tree::{Installed, Tree};
use super::{Architecture, HOMEPAGE, LICENSE, Release, SUMMARY};

/// `ioscape-0.1.0-1.x86_64.rpm`.
pub(super) fn name(release: &Release, of: &Architecture) -> String {
    format!("ioscape-{}-1.{}.rpm", release.version, of.name)
}

/// The package.
pub(super) fn package(tree: &Tree, release: &Release, of: &Architecture) -> io::Result<Vec<u8>> {
    let time_s = u32::try_from(release.time_s).map_err(io::Error::other)?;
    let config = BuildConfig::default().compression(CompressionType::None);
    let mut builder = PackageBuilder::new("ioscape", &release.version, LICENSE, of.name, SUMMARY)
        .using_config(config)
        .release("1")
        .url(HOMEPAGE)
        .build_host("ioscape")
        .source_date(time_s);
    for file in tree.files.iter().filter(|file| is_for_rpm(file)) {
        let mode = FileMode::regular(u16::try_from(file.mode).map_err(io::Error::other)?);
        let options = FileOptions::new(format!("/{}", file.path)).mode(mode);
        builder =
            builder.with_file_contents(file.bytes.clone(), options).map_err(io::Error::other)?;
    }
    let mut bytes = Vec::new();
    builder.build().and_then(|package| package.write(&mut bytes)).map_err(io::Error::other)?;
    Ok(bytes)
}

/// Other distributions' places are left out.
fn is_for_rpm(file: &Installed) -> bool {
    !file.path.contains("/vendor-completions/")
}
