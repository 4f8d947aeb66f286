//! Models of well-known programs, by name: for `predict --app`, `compare --app` and `replay`. Each was
//! recorded on one machine as `data/apps/recipes.sh` says, so each is of that program doing that. Two web
//! sites are made of published figures, see `data/apps/sites.py`.

use std::path::Path;

/// Names and models, as `ioscape trace model` wrote them.
const MODELS: &[(&str, &str)] = &[
    ("cargo-build", include_str!("../data/apps/cargo-build.json")),
    ("etcd-log", include_str!("../data/apps/etcd-log.json")),
    ("git-status", include_str!("../data/apps/git-status.json")),
    ("grep", include_str!("../data/apps/grep.json")),
    ("nginx", include_str!("../data/apps/nginx.json")),
    ("postgres-oltp", include_str!("../data/apps/postgres-oltp.json")),
    ("rocksdb-ycsb-a", include_str!("../data/apps/rocksdb-ycsb-a.json")),
    ("sort", include_str!("../data/apps/sort.json")),
    ("specweb96", include_str!("../data/apps/specweb96.json")),
    ("sqlite-delete", include_str!("../data/apps/sqlite-delete.json")),
    ("sqlite-wal", include_str!("../data/apps/sqlite-wal.json")),
    ("surge", include_str!("../data/apps/surge.json")),
    ("tar-create", include_str!("../data/apps/tar-create.json")),
    ("tar-extract", include_str!("../data/apps/tar-extract.json")),
];

/// The model of this name.
pub(crate) fn model(name: &Path) -> Option<&'static str> {
    let name = name.to_str()?;
    MODELS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// All names, in one line.
pub(crate) fn names() -> String {
    MODELS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use ioscape_model::App;
    use ioscape_model::app::APP_BYTES_MAX;
    use ioscape_trace::regenerate::{Regenerated, Scale};
    use ioscape_trace::site::{Scaled, SiteLoad};

    use super::*;

    #[test]
    fn every_model_answers_and_names_nobody() {
        assert!(model(Path::new("sqlite-wal")).is_some() && model(Path::new("nonsense")).is_none());
        for (name, text) in MODELS {
            assert!(text.len() <= APP_BYTES_MAX, "{name}: {} bytes", text.len());
            let app = App::parse(text).unwrap();
            // A log tells of requests and not of the calls that answered them.
            let is_counted = app.demand.is_some() || app.site.is_some();
            assert!(is_counted && app.caches.is_some(), "{name}");
            assert!(
                !text.contains("/home") && !text.contains("/tmp") && !text.contains(".db"),
                "{name}"
            );
            let events = if let Some(site) = app.site.clone() {
                let load = SiteLoad::new(site, Scaled::default(), 1).unwrap();
                load.events().take(100_000).count()
            } else {
                let load = Regenerated::new(app, Scale::default(), 1).unwrap();
                load.events().take(1_000_000).count()
            };
            assert!(events > 100, "{name}: {events} events");
        }
    }
}
