//! The process above all others.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::Command,
    time::SystemTime,
};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, wait};

use crate::{
    arguments::Arguments,
    processes,
    setup::{FOLDER, FOLDERS},
};

/// Starts the worker, and reaps it and all processes that others leave. Returns whether all was
/// right.
pub(crate) fn supervise(arguments: &Arguments) -> Result<bool> {
    let seed = arguments.seed.map_or_else(new_seed, Ok)?;
    println!("backend {}, seed {seed}", arguments.backend);
    set_child_subreaper(Some(getpid()))?;
    // An interrupt is for the worker, which ends in order.
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.spawn(async { while tokio::signal::ctrl_c().await.is_ok() {} });
    // Before, so that it is in the cache of the user.
    vmcell_rootfs::recipe::base().cached()?;
    let folder = tempfile::Builder::new().prefix("soak").tempdir()?;
    let mut worker = Command::new(env::current_exe()?);
    // Of the arenas of other threads, the allocator does not return the ends to the system.
    worker
        .env(FOLDER, folder.path())
        .env("MALLOC_ARENA_MAX", "1");
    let user_cache = cache_folder()?;
    for (variable, name) in FOLDERS {
        let path = folder.path().join(name);
        fs::create_dir(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
        worker.env(variable, path);
    }
    link_cache(&user_cache, &folder.path().join("cache/vmcell"))?;
    let worker = worker
        .args(arguments.to_words(seed))
        .arg("worker")
        .spawn()
        .context("cannot start the worker")?;
    let is_good = reap(Pid::from_child(&worker))?;
    let left = processes::descendants(getpid().as_raw_pid());
    for process in &left {
        println!("FAILED: left at the end: {}", process.describe());
        process.kill();
    }
    folder.close()?;
    Ok(is_good && left.is_empty())
}

fn new_seed() -> Result<u64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(now.as_micros() as u64)
}

fn cache_folder() -> Result<std::path::PathBuf> {
    let folder = env::var_os("XDG_CACHE_HOME").map(Into::into);
    let home = env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    folder
        .or(home)
        .context("neither XDG_CACHE_HOME nor HOME is set")
}

/// Makes a cache of links to what is in that of the user, except of templates.
fn link_cache(user: &Path, own: &Path) -> Result<()> {
    fs::create_dir(own)?;
    for entry in fs::read_dir(user.join("vmcell"))? {
        let entry = entry?;
        if entry.file_name() != "templates" {
            symlink(entry.path(), own.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Waits for all children until the worker has ended. Returns whether all was right there.
fn reap(worker: Pid) -> Result<bool> {
    loop {
        match wait(WaitOptions::empty())? {
            Some((pid, status)) if pid == worker => match status.exit_status() {
                Some(code @ (0 | 1)) => return Ok(code == 0),
                _ => bail!("the worker ended with {status:?}"),
            },
            _ => {}
        }
    }
}
