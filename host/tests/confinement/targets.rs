//! What an attacker finds on a host.

use std::{
    fs,
    net::{TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::PermissionsExt as _,
            net::{SocketAddr, UnixListener},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

/// Things of the user who runs VMs. They are there until this is dropped.
pub(crate) struct Targets {
    home: tempfile::TempDir,
    abstract_name: String,
    tcp: TcpListener,
    udp: UdpSocket,
    victim: Child,
    _listeners: [UnixListener; 2],
}

impl Targets {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("key"), "secret").unwrap();
        fs::write(home.path().join("other-layer"), "disk").unwrap();
        let socket = UnixListener::bind(home.path().join("other-socket")).unwrap();
        let unique = home.path().file_name().unwrap().to_str().unwrap();
        let abstract_name = format!("vmcell-test{unique}");
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let abstract_socket = UnixListener::bind_addr(&address).unwrap();
        Self {
            home,
            abstract_name,
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            victim: Command::new("sleep")
                .arg("1000")
                .stdin(Stdio::null())
                .spawn()
                .unwrap(),
            _listeners: [socket, abstract_socket],
        }
    }

    /// Describes them for the attacker.
    pub(crate) fn describe(&self) -> Value {
        let home = self.home.path();
        json!({
            "home": home,
            "key": home.join("key"),
            "layer": home.join("other-layer"),
            "socket": home.join("other-socket"),
            "abstract": self.abstract_name,
            "tcp": self.tcp.local_addr().unwrap().port(),
            "udp": self.udp.local_addr().unwrap().port(),
            "victim": self.victim.id(),
            "program": program_among_libraries(Path::new("/usr/lib"), 3),
        })
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Finds a program in a folder that every VMM can read.
fn program_among_libraries(folder: &Path, depth: usize) -> Option<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).ok()?.flatten().collect();
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        let is_program = metadata.is_file()
            && metadata.permissions().mode() & 0o111 == 0o111
            && !path.to_string_lossy().contains(".so");
        if is_program {
            return Some(path);
        }
        let found = (metadata.is_dir() && depth > 0)
            .then(|| program_among_libraries(&path, depth - 1))
            .flatten();
        if found.is_some() {
            return found;
        }
    }
    None
}
