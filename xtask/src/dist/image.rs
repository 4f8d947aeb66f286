//! A container image from nothing: the static binary alone, run by nobody in particular (user
//! 65532) in /data. Laid out as the OCI image layout says, with the list that `docker load` reads.

use std::io;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::tree::{Installed, PROGRAM, Tree, gzipped, tar};
use super::{Architecture, HOMEPAGE, LICENSE, Release, SUMMARY, hex};

/// Nobody: no image of ours has a user of this number.
const USER: u64 = 65532;

/// The image as an archive for `docker load`, `podman load`, `skopeo copy oci-archive:`.
pub(super) fn image(tree: &Tree, release: &Release, of: &Architecture) -> io::Result<Vec<u8>> {
    let program = tree.files.iter().find(|file| file.path == PROGRAM);
    let program = program.ok_or_else(|| io::Error::other("there is no program"))?;
    let files = [
        // A volume that is mounted there for the first time is made theirs.
        Installed { owner: USER, ..file("data/.keep", Vec::new()) },
        file("etc/passwd", format!("ioscape:x:{USER}:{USER}::/data:/\n").into_bytes()),
        Installed::program(program.bytes.clone()),
    ];
    let layer = tar(&files, "", release.time_s)?;
    let packed = gzipped(&layer)?;
    let config = bytes(&config(release, of, &layer));
    let manifest = bytes(&manifest(&config, &packed));
    let tag = format!("ioscape:{}", release.version);
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": digest(&manifest),
            "size": manifest.len(),
            "platform": {"architecture": of.container, "os": "linux"},
            "annotations": {
                "io.containerd.image.name": format!("docker.io/library/{tag}"),
                "org.opencontainers.image.ref.name": release.version,
            },
        }],
    });
    let list = json!([{"Config": blob(&config), "RepoTags": [tag], "Layers": [blob(&packed)]}]);
    let mut all = vec![
        file(&blob(&config), config.clone()),
        file(&blob(&manifest), manifest.clone()),
        file(&blob(&packed), packed.clone()),
        file("index.json", bytes(&index)),
        file("manifest.json", bytes(&list)),
        file("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()),
    ];
    all.sort_by(|a, b| a.path.cmp(&b.path));
    tar(&all, "", release.time_s)
}

fn config(release: &Release, of: &Architecture, layer: &[u8]) -> Value {
    json!({
        "architecture": of.container,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "WorkingDir": "/data",
            "Entrypoint": [format!("/{PROGRAM}")],
            "Env": ["PATH=/usr/bin"],
            "Volumes": {"/data": {}},
            "Labels": {
                "org.opencontainers.image.title": "ioscape",
                "org.opencontainers.image.description": SUMMARY,
                "org.opencontainers.image.licenses": LICENSE,
                "org.opencontainers.image.source": HOMEPAGE,
                "org.opencontainers.image.version": release.version,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
    })
}

fn manifest(config: &[u8], packed: &[u8]) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": digest(config),
            "size": config.len(),
        },
        "layers": [{
            "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
            "digest": digest(packed),
            "size": packed.len(),
        }],
    })
}

fn file(path: &str, bytes: Vec<u8>) -> Installed {
    Installed::plain(path.to_owned(), bytes)
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

fn blob(bytes: &[u8]) -> String {
    format!("blobs/sha256/{}", hex(&Sha256::digest(bytes)))
}
