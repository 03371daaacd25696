use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use vmcell::Command;
use vmcell_benches::{
    memory,
    summary::{Bound, fact, median_round, row},
};

use crate::{milliseconds, store::Store, timed};

const ROUNDS: usize = 11;
const COUNT: usize = 10_000;

/// A list of many workspaces.
pub(crate) async fn list(image: &Path) -> Result<()> {
    let store = Store::new()?;
    make_many(&store, image).await?;
    let before = memory::resident()?;
    memory::reset_peak()?;
    ensure!(store.resident.list().await?.len() == COUNT);
    let grown = memory::peak()?.saturating_sub(before);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let baseline = read_time(&store)?;
        rounds.push((timed(store.resident.list()).await?.0, baseline));
    }
    let (ours, baseline) = median_round(rounds);
    let name = format!("list of {COUNT} workspaces");
    let limit = Duration::from_millis(500);
    fact(&name, &milliseconds(ours), "< 500 ms", ours < limit);
    row(
        "the same",
        &milliseconds(ours),
        &format!("{} (reading their records)", milliseconds(baseline)),
        ours.as_secs_f64() / baseline.as_secs_f64(),
        Bound::None,
    );
    fact(
        "memory meanwhile",
        &format!("{} MiB", grown >> 20),
        "< 64 MiB",
        grown < 64 << 20,
    );
    Ok(())
}

/// Makes copies of a stopped workspace that has run some commands.
async fn make_many(store: &Store, image: &Path) -> Result<()> {
    let workspace = store.stopped(image).await?;
    workspace.start().await?;
    for number in 0..3 {
        workspace
            .exec(Command::shell(format!("echo {number}")))
            .await?;
    }
    workspace.stop().await?;
    let folder = store.folder().join(workspace.id());
    let record = fs::read_to_string(folder.join(RECORD))?;
    for number in 1..COUNT {
        let id = id(number);
        let copy = store.folder().join(&id);
        link_all(&folder, &copy)?;
        fs::write(copy.join(RECORD), record.replace(workspace.id(), &id))?;
    }
    Ok(())
}

/// The file that says all about a workspace.
const RECORD: &str = "workspace.json";

/// Returns an id that a workspace may have: twelve of these letters.
fn id(number: usize) -> String {
    let letters = "abcdefghjk".as_bytes();
    let digits = format!("{number:012}");
    let letter = |digit: u8| char::from(letters[usize::from(digit - b'0')]);
    format!("ws-{}", digits.bytes().map(letter).collect::<String>())
}

/// Gives all files of a folder, but for the record, a name in a copy of it.
fn link_all(folder: &Path, copy: &Path) -> Result<()> {
    fs::create_dir(copy)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, copy) = (entry.path(), copy.join(entry.file_name()));
        match path.is_dir() {
            true => link_all(&path, &copy)?,
            false if path.ends_with(RECORD) => {}
            false => fs::hard_link(path, copy)?,
        }
    }
    Ok(())
}

/// Returns how long it takes to read what is written down about all workspaces.
fn read_time(store: &Store) -> Result<Duration> {
    let begun = Instant::now();
    let mut count = 0;
    for entry in fs::read_dir(store.folder())? {
        count += usize::from(fs::read(entry?.path().join(RECORD)).is_ok());
    }
    ensure!(count == COUNT, "{count} records");
    Ok(begun.elapsed())
}
