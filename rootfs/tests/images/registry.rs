//! Images of a real registry, Debian's `docker-registry`, on this machine.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tempfile::TempDir;
use vmcell_rootfs::oci::OciImage;
use vmcell_rootfs::registry::{PullOptions, Reference, pull};
use vmcell_rootfs::{Cache, Error, Recipe as _};

use crate::container_registry::Registry;
use crate::oci::{Layout, describe};

/// Passes connections on to a registry, counts what it sends, and breaks off after a number of
/// bytes.
struct Link {
    address: SocketAddr,
    sent: Arc<AtomicU64>,
    left: Arc<AtomicU64>,
}

impl Link {
    fn to(registry: &Registry) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (sent, left) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicU64::new(u64::MAX)),
        );
        let (target, counted, limit) = (registry.address, sent.clone(), left.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(target) else {
                    continue;
                };
                let (sent, left) = (counted.clone(), limit.clone());
                let ends = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || {
                    let _ = std::io::copy(&mut &ends.0, &mut &ends.1);
                });
                thread::spawn(move || pass(&server, &client, &sent, &left));
            }
        });
        Self {
            address,
            sent,
            left,
        }
    }

    fn reference(&self, name: &str) -> Reference {
        format!("{}/{name}", self.address).parse().unwrap()
    }
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, sent: &AtomicU64, left: &AtomicU64) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let length = length as u64;
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(length)
        });
        if taken.is_err() || to.write_all(&buffer[..length as usize]).is_err() {
            break;
        }
        sent.fetch_add(length, Ordering::Relaxed);
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// Bytes that do not get smaller when they are compressed.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn push(registry: &Registry, layout: &Layout, tag: &str, name: &str) {
    let source = format!("oci:image:{tag}");
    let target = format!("docker://{}/{name}", registry.address);
    let copy = ["copy", "--dest-tls-verify=false", &source, &target];
    layout.run("skopeo", &copy);
}

fn options() -> PullOptions {
    PullOptions::default().plain_http(true)
}

fn pull_into(cache: &TempDir, reference: &Reference) -> Result<OciImage, Error> {
    pull(&Cache::at(cache.path()), reference, options(), |_, _| {})
}

#[test]
fn an_image_is_pulled_and_shared_layers_only_once() {
    let layout = Layout::with_layers();
    let registry = Registry::start(None);
    let noise = noise(4 << 20);
    layout.layer("three", "four", |root| {
        fs::write(root.join("noise"), &noise).unwrap()
    });
    layout.layer("four", "five", |root| {
        fs::write(root.join("last"), "small").unwrap()
    });
    push(&registry, &layout, "four", "team/tool:4");
    push(&registry, &layout, "five", "team/tool:5");
    let link = Link::to(&registry);
    let cache = TempDir::new().unwrap();
    let mut reports = Vec::new();
    let pulled = pull(
        &Cache::at(cache.path()),
        &link.reference("team/tool:4"),
        options(),
        |bytes, all| reports.push((bytes, all)),
    );
    let pulled = pulled.unwrap();
    let local = layout.open("oci:image:four").unwrap();
    assert_eq!(pulled.id(), local.id());
    assert_eq!(
        describe(&pulled.tree().unwrap()),
        describe(&local.tree().unwrap())
    );
    let (bytes, all) = *reports.last().unwrap();
    assert_eq!(bytes, all);

    let first = link.sent.swap(0, Ordering::Relaxed);
    assert!(first > 1 << 20, "{first}");
    let second = pull_into(&cache, &link.reference("team/tool:5")).unwrap();
    let sent = link.sent.load(Ordering::Relaxed);
    assert!(sent < 64 << 10, "{sent} bytes for one small layer");
    // By its digest, and with nothing but that.
    let digest = second.manifest().unwrap();
    let exact = link.reference(&format!("team/tool@sha256:{digest}"));
    assert_eq!(pull_into(&cache, &exact).unwrap().id(), second.id());
}

#[test]
fn a_pull_that_breaks_off_anywhere_goes_on() {
    let layout = Layout::with_layers();
    let registry = Registry::start(None);
    let noise = noise(1 << 20);
    layout.layer("three", "four", |root| {
        fs::write(root.join("noise"), &noise).unwrap()
    });
    push(&registry, &layout, "four", "tool:4");
    let link = Link::to(&registry);
    let reference = link.reference("tool:4");
    let all = {
        let cache = TempDir::new().unwrap();
        pull_into(&cache, &reference).unwrap();
        link.sent.load(Ordering::Relaxed)
    };
    for tenth in 0..10 {
        let cache = TempDir::new().unwrap();
        link.left.store(all * tenth / 10, Ordering::Relaxed);
        let error = pull_into(&cache, &reference).unwrap_err();
        assert!(matches!(error, Error::Image { .. }), "{error:?}");
        link.left.store(u64::MAX, Ordering::Relaxed);
        link.sent.store(0, Ordering::Relaxed);
        let image = pull_into(&cache, &reference).unwrap();
        assert!(image.tree().is_ok());
        // What was there is not sent again, but documents, headers, and what was on its way.
        let sent = link.sent.load(Ordering::Relaxed);
        assert!(
            sent < all - all * tenth / 10 + (128 << 10),
            "{tenth}: {sent} of {all}"
        );
        let blobs = fs::read_dir(cache.path().join("blobs/sha256")).unwrap();
        let mut names = blobs.map(|blob| blob.unwrap().file_name());
        assert!(names.all(|name| name.len() == 64));
    }
}

#[test]
fn what_a_registry_does_not_give_is_said() {
    let layout = Layout::with_layers();
    let registry = Registry::start(None);
    push(&registry, &layout, "one", "tool:1");
    let cache = TempDir::new().unwrap();
    let name = |name: &str| format!("{}/{name}", registry.address).parse().unwrap();
    for (reference, said) in [
        (name("tool:2"), "does not have it"),
        (name("other:1"), "does not have it"),
        (
            name(&format!("tool@sha256:{}", "a".repeat(64))),
            "does not have it",
        ),
        ("127.0.0.1:1/tool:1".parse().unwrap(), "cannot be reached"),
    ] {
        let error = pull_into(&cache, &reference).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    // Without being told so, nothing is asked without encryption.
    let encrypted = pull(
        &Cache::at(cache.path()),
        &name("tool:1"),
        PullOptions::default(),
        |_, _| {},
    );
    let error = encrypted.unwrap_err().to_string();
    assert!(error.contains("cannot be reached"), "{error}");
}
