//! A real registry of images, Debian's `docker-registry`, on this machine.

use std::{
    env, fs,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// A registry that ends with this.
pub(crate) struct Registry {
    program: Child,
    pub(crate) address: SocketAddr,
    _folder: TempDir,
}

impl Registry {
    /// Starts one that serves everybody, or only those of a file of `htpasswd`.
    pub(crate) fn start(users: Option<&str>) -> Self {
        let folder = TempDir::new().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let path = |name: &str| folder.path().join(name);
        let mut config = format!(
            "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: {address}\n",
            path("storage").display()
        );
        if let Some(users) = users {
            fs::write(path("users"), users).unwrap();
            config += &format!(
                "auth:\n  htpasswd:\n    realm: test\n    path: {}\n",
                path("users").display()
            );
        }
        fs::write(path("config.yml"), config).unwrap();
        let program = Command::new(program())
            .arg("serve")
            .arg(path("config.yml"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("`make vsock` fetches what the tests need, docker-registry, too");
        let until = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < until, "the registry does not listen");
            thread::yield_now();
        }
        Self {
            program,
            address,
            _folder: folder,
        }
    }
}

/// The program, where `scripts/setup.sh` has put it, or an installed one.
fn program() -> PathBuf {
    let home = || env::home_dir().unwrap().join(".cache");
    let cache = env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from);
    let fetched = cache.join("vmcell/tools/bin/docker-registry");
    match fetched.exists() {
        true => fetched,
        false => "docker-registry".into(),
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
