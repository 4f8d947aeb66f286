//! Paths as programs write them, made whole.

/// A path relative to a directory as an absolute one, without `.`, `..` and doubled slashes.
/// Symbolic links are taken for directories, so `a/..` is where `a` is.
pub(crate) fn absolute(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let start = if path.starts_with('/') { "" } else { directory };
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_whole() {
        for (directory, path, whole) in [
            ("/home/a", "b", "/home/a/b"),
            ("/home/a", "../b/./c", "/home/b/c"),
            ("/home/a", "/b//c/", "/b/c"),
            ("/", "../..", "/"),
            ("", "a", "/a"),
        ] {
            assert_eq!(absolute(directory, path), whole, "{directory} {path}");
        }
    }
}
