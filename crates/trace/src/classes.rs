//! Classes of files by their names' extensions, from a fixed list: a class says what a file is for
//! and nothing of who named it.

/// Class, and the extensions that it has.
const CLASSES: [(&str, &[&str]); 17] = [
    ("log", &["log", "journal", "out", "err"]),
    ("write_ahead_log", &["wal", "db-wal", "sqlite-wal", "binlog", "redo"]),
    ("database_journal", &["db-journal", "sqlite-journal"]),
    ("database", &["db", "sqlite", "sqlite3", "mdb", "ibd", "frm", "myd", "ldb", "sst", "rdb"]),
    ("shared_memory", &["db-shm", "sqlite-shm", "shm"]),
    ("archive", &["tar", "gz", "tgz", "zip", "zst", "xz", "bz2", "7z", "jar", "deb", "rpm"]),
    ("text", &["txt", "md", "csv", "tsv", "rst"]),
    ("markup", &["html", "htm", "xml", "json", "yaml", "yml", "toml", "ini", "conf", "cfg"]),
    ("source", &["c", "h", "cc", "cpp", "hpp", "rs", "go", "py", "js", "ts", "java", "sh", "pl"]),
    ("object_code", &["o", "a", "rlib", "rmeta", "class", "pyc", "obj", "d"]),
    ("program", &["so", "exe", "dll"]),
    ("image", &["png", "jpg", "jpeg", "gif", "webp", "svg", "tif", "tiff", "bmp"]),
    ("style_or_font", &["css", "woff", "woff2", "ttf", "otf", "eot", "ico"]),
    ("sound_or_film", &["mp3", "mp4", "mkv", "avi", "wav", "flac", "ogg", "mov"]),
    ("pack", &["pack", "idx", "bitmap", "rev"]),
    ("scientific", &["h5", "hdf5", "nc", "parquet", "npy", "npz", "arrow", "fits", "tfrecord"]),
    ("temporary", &["tmp", "temp", "swp", "bak", "part", "lock"]),
];

/// The class of a path's extension, empty where it has none that is known.
#[must_use]
pub fn class_of(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some((_, extension)) = name.rsplit_once('.') else { return "" };
    let extension = extension.to_ascii_lowercase();
    // `libc.so.6`
    if !extension.is_empty() && extension.bytes().all(|b| b.is_ascii_digit()) {
        return if name.contains(".so.") { "program" } else { "" };
    }
    let has = |(_, all): &&(&str, &[&str])| all.contains(&extension.as_str());
    CLASSES.iter().find(has).map_or("", |(class, _)| *class)
}

/// Whether a word is one of the classes.
pub(crate) fn is_known(class: &str) -> bool {
    CLASSES.iter().any(|(known, _)| *known == class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_known_or_empty() {
        for (path, class) in [
            ("/var/log/a.b.LOG", "log"),
            ("x.db-wal", "write_ahead_log"),
            ("/lib/libc.so.6", "program"),
            ("secret.1", ""),
            ("a.secret", ""),
            ("dir.d/name", ""),
            ("", ""),
        ] {
            assert_eq!(class_of(path), class, "{path}");
            assert!(class.is_empty() || is_known(class));
        }
    }
}
