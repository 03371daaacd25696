//! `vmcell top`: what all running VMs use now.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, IsTerminal as _, Write},
    os::fd::AsFd as _,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use tokio::{
    task::{JoinSet, spawn_blocking},
    time::{MissedTickBehavior, interval, timeout},
};
use vmcell::{Vm, VmDetails, VmInfo, metrics::Sample};
use vmcell_cli::{
    options::size::human_readable,
    show::{self, Table},
    signals::Signals,
};

use crate::{
    failure::print_json,
    ps,
    runtime::block_on,
    shell::{self, Keyboard, RawMode, WindowWatcher},
    target,
};

#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// Print what the VMs use now as JSON, once.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How often the screen is refreshed.
const PERIOD: Duration = Duration::from_secs(1);

/// How long the owner of a VM may take to return a sample, which comes every second.
const SAMPLE_TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) fn top(arguments: &TopArguments) -> anyhow::Result<u8> {
    let is_live = !arguments.json && io::stdin().is_terminal() && io::stdout().is_terminal();
    block_on(async {
        let mut vms = RunningVms::default();
        if is_live {
            return live(vms).await;
        }
        let usages = vms.measure().await?;
        if arguments.json {
            print_json(&as_json(&usages));
        } else {
            table(usages).print_to_stdout()?;
        }
        Ok(0)
    })
}

/// A VM, and what it uses if its owner answers.
struct VmUsage {
    info: VmInfo,
    sample: Option<Sample>,
}

/// The VMs that this program is attached to.
#[derive(Default)]
struct RunningVms {
    attached: HashMap<String, Vm>,
}

impl RunningVms {
    /// Waits for the next sample of each VM, a second at most if their owners answer.
    async fn measure(&mut self) -> anyhow::Result<Vec<VmUsage>> {
        let list = Vm::list().await?;
        self.attached
            .retain(|id, _| list.iter().any(|info| info.id == *id));
        let mut measuring = JoinSet::new();
        for info in list {
            let known = self.attached.get(&info.id).cloned();
            measuring.spawn(async move {
                if info.details().is_none() {
                    return (VmUsage { info, sample: None }, None);
                }
                let measured = timeout(SAMPLE_TIMEOUT, measure(&info.id, known)).await;
                let (vm, sample) = measured.unwrap_or_default();
                (VmUsage { info, sample }, vm)
            });
        }
        let mut usages = Vec::new();
        while let Some(measured) = measuring.join_next().await {
            let (usage, vm) = measured?;
            match vm {
                Some(vm) => self.attached.insert(usage.info.id.clone(), vm),
                None => self.attached.remove(&usage.info.id),
            };
            usages.push(usage);
        }
        usages.sort_by(|one, other| one.info.id.cmp(&other.info.id));
        Ok(usages)
    }
}

/// Returns the next sample of a VM, and its handle for the next time.
async fn measure(id: &str, known: Option<Vm>) -> (Option<Vm>, Option<Sample>) {
    let vm = match known {
        Some(vm) => Ok(vm),
        None => target::attach(id).await,
    };
    let Ok(vm) = vm else {
        return (None, None);
    };
    match vm.next_sample().await {
        Ok(sample) => (Some(vm), Some(sample)),
        // It has ended, or has no metrics.
        Err(_) => (None, None),
    }
}

fn as_json(usages: &[VmUsage]) -> Value {
    let vms = usages.iter().map(|usage| {
        let mut object = show::json::value(&usage.info);
        object["sample"] = show::json::value(usage.sample);
        object
    });
    json!({ "vms": vms.collect::<Vec<_>>() })
}

/// Returns a table, in which the busiest VM is the first.
fn table(mut usages: Vec<VmUsage>) -> Table<10> {
    let percent = |usage: &VmUsage| usage.sample.map_or(-1.0, |sample| sample.cpu_percent);
    usages.sort_by(|one, other| percent(other).total_cmp(&percent(one)));
    let mut table = Table::new([
        "ID",
        "STATE",
        "UPTIME",
        "VCPUS",
        "CPU",
        "MEMORY",
        "DISK",
        "PROCESSES",
        "RECEIVED",
        "SENT",
    ]);
    for VmUsage { info, sample } in usages {
        let detail = |text: fn(&VmDetails) -> String| match info.details() {
            Some(details) => text(details),
            None => UNKNOWN.to_owned(),
        };
        let bytes = |bytes: fn(&Sample) -> Option<u64>| match sample.as_ref().and_then(bytes) {
            Some(bytes) => human_readable(bytes),
            None => UNKNOWN.to_owned(),
        };
        table.add([
            info.id.clone(),
            info.status.name().replace('-', " "),
            detail(|details| ps::human_readable(ps::uptime(details))),
            detail(|details| details.vcpus.to_string()),
            sample.map_or(UNKNOWN.to_owned(), |it| format!("{:.1}%", it.cpu_percent)),
            bytes(|sample| Some(sample.memory_bytes)),
            bytes(|sample| sample.disk_bytes),
            sample
                .and_then(|it| it.processes)
                .map_or(UNKNOWN.to_owned(), |it| it.to_string()),
            bytes(|sample| Some(sample.received_bytes)),
            bytes(|sample| Some(sample.sent_bytes)),
        ]);
    }
    table
}

/// Shown for what the VM's owner has not reported.
const UNKNOWN: &str = "-";

/// Shows a table on the terminal until the user ends it. In any case, the terminal is
/// restored.
async fn live(mut vms: RunningVms) -> anyhow::Result<u8> {
    let mut signals = Signals::all()?;
    let mut window = WindowWatcher::watch()?;
    let mut keyboard = Keyboard::start()?;
    // Dropped in reverse order: first the screen, then the terminal's mode.
    let mode = RawMode::enter()?;
    let screen = Screen::enter()?;
    let showing = async {
        let mut seconds = interval(PERIOD);
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            seconds.tick().await;
            let mut text = Vec::new();
            table(vms.measure().await?).print(&mut text)?;
            screen.show(&String::from_utf8_lossy(&text)).await?;
        }
    };
    tokio::select! {
        shown = showing => shown,
        () = wait_for_quit(&mut keyboard) => Ok(0),
        error = restore_mode(&mut window, &mode) => Err(error.into()),
        code = signals.next() => Ok(code),
    }
}

/// Waits until the user presses q or Ctrl-C, or the terminal is gone.
async fn wait_for_quit(keyboard: &mut Keyboard) {
    const CTRL_C: u8 = 3;
    while let Some(typed) = keyboard.next().await {
        if typed.iter().any(|key| matches!(*key, b'q' | b'Q' | CTRL_C)) {
            return;
        }
    }
}

/// Sets raw mode again whenever other programs may have changed the terminal.
async fn restore_mode(window: &mut WindowWatcher, mode: &RawMode) -> io::Error {
    loop {
        window.changed().await;
        if let Err(error) = mode.apply() {
            return error;
        }
    }
}

/// The alternate screen of the terminal, without a cursor. The user's own is shown again on
/// drop.
struct Screen {
    terminal: Arc<File>,
}

impl Screen {
    fn enter() -> io::Result<Self> {
        // Without the lock of standard output, which a write to a stuck terminal would hold.
        let terminal = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        (&terminal).write_all(b"\x1b[?1049h\x1b[?25l")?;
        let terminal = Arc::new(terminal);
        Ok(Self { terminal })
    }

    /// Shows as much of a text as fits. A terminal that is stuck blocks another thread.
    async fn show(&self, text: &str) -> anyhow::Result<()> {
        let size = shell::terminal_size().unwrap_or_default();
        let page = page(text, size.columns.into(), size.rows.into());
        let terminal = self.terminal.clone();
        let writing = spawn_blocking(move || (&*terminal).write_all(page.as_bytes()));
        Ok(writing.await??)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut writable = [PollFd::new(&*self.terminal, PollFlags::OUT)];
        if poll(&mut writable, Some(&Timespec::default())).is_ok_and(|ready| ready == 1) {
            // Fails only if the terminal is gone.
            let _ = (&*self.terminal).write_all(b"\x1b[?25h\x1b[?1049l");
        }
    }
}

/// Returns what replaces the contents of a screen, without clearing it before, which would
/// flicker. The terminal is in raw mode, where a line feed does not return to the first
/// column.
fn page(text: &str, columns: usize, rows: usize) -> String {
    let mut page = "\x1b[H".to_owned();
    for line in text.lines().take(rows.saturating_sub(1)) {
        page.extend(line.chars().take(columns));
        // To the end of the line; then the next one.
        page += "\x1b[K\r\n";
    }
    // To the end of the screen.
    page + "\x1b[Jq quits"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_fits_on_its_screen() {
        let text = "ID  CPU\none  10%\ntwo  9%\n";
        assert_eq!(
            page(text, 5, 3),
            "\x1b[HID  C\x1b[K\r\none  \x1b[K\r\n\x1b[Jq quits"
        );
        assert_eq!(page(text, 80, 0), "\x1b[H\x1b[Jq quits");
    }
}
