use rustix::io::Errno;
use vmcell_wire::{Cause, Exit, Lifetime};

use super::{Output, Process, Role};
use crate::{
    cgroup::{Cgroup, Cgroups},
    clock::Moment,
    kernel_log::KernelLog,
    sys::{Reaped, signal_group, signal_process},
};

/// How far a process is on its way out.
#[derive(Default)]
pub(crate) struct Ending {
    /// Who wanted it to end, if somebody did: the first one.
    asked: Option<Asked>,
    leader: Option<Leader>,
    /// The descendants have had their time to go.
    tree_was_waited_for: bool,
    exit: Option<Exit>,
    /// The owner was told the exit, and has not said that it knows.
    pub(super) told: bool,
    /// Nobody will ask for it again: it goes when it can.
    pub(super) abandoned: bool,
}

/// Who wants a process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Host,
    Timeout,
}

/// The process itself, once it has been reaped.
struct Leader {
    usage: Reaped,
    cause: Cause,
    oom_kills: u32,
    at: Moment,
}

const KILL: u8 = 9;
const TERM: u8 = 15;
const HUP: u8 = 1;

const SIGKILL: Cause = Cause::Signal(KILL);

impl Ending {
    /// Whether the leader has been reaped.
    pub(crate) fn leader_is_gone(&self) -> bool {
        self.leader.is_some()
    }

    /// Why the leader has ended.
    pub(crate) fn cause(&self) -> Option<Cause> {
        self.leader.as_ref().map(|leader| leader.cause)
    }

    /// How it ended, once nothing can change that any more.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.exit
    }
}

impl Process {
    /// Whether hosts may still name it. A foreground process whose exit was
    /// told is over, though a host may resume it to hear the exit again.
    pub(super) fn is_known(&self) -> bool {
        let over = self.lifetime == Lifetime::Foreground && self.ending.told;
        !over && !self.ending.abandoned && self.role != Role::Probe
    }

    /// Whether the leader has been reaped, or never became a program: then its
    /// pid may be somebody else's.
    pub(crate) fn has_ended(&self) -> bool {
        self.ending.leader_is_gone() || self.start_failure().is_some()
    }

    /// Sends a signal to its process group.
    pub(crate) fn signal(&self, signal: u8) -> Result<(), Errno> {
        if self.has_ended() {
            return Err(Errno::SRCH);
        }
        match signal_group(self.pid, signal) {
            // It has yet to make a group of its own.
            Err(Errno::SRCH) if self.is_starting() => signal_process(self.pid, signal),
            sent => sent,
        }
    }

    /// Ends the whole tree at once.
    pub(crate) fn kill(&mut self, asked: Asked) {
        self.ending.asked.get_or_insert(asked);
        self.ending.tree_was_waited_for = false;
        let through_cgroup = self.cgroup.as_mut().map(Cgroup::kill);
        if !matches!(through_cgroup, Some(Ok(()))) {
            let _ = self.signal(KILL);
        }
    }

    /// Nobody reads its outputs any more.
    ///
    /// Only after it was killed: a process that writes to a closed pipe dies of
    /// that.
    pub(crate) fn close_pipes(&mut self) {
        self.stdin = None;
        self.stdout.close();
        self.stderr.close();
    }

    /// Asks its process group to end.
    pub(crate) fn terminate(&self) {
        let _ = self.signal(TERM);
    }

    /// Says that its terminal goes, if it runs on one: shells that somebody
    /// types to heed nothing less.
    pub(crate) fn hang_up(&self) {
        if self.terminal.is_some() {
            let _ = self.signal(HUP);
        }
    }

    /// Whether it has ended, as far as anybody will hear, and its descendants may
    /// live.
    pub(super) fn has_left_some(&self) -> bool {
        self.ending.exit.is_some() && self.cgroup.is_some()
    }

    /// From now on it is only known for what it left behind. It goes as soon as
    /// that is gone and nobody waits for it.
    pub(super) fn stays_for_descendants(&mut self) {
        if self.ending.exit.is_none() {
            self.ending.exit = self.exit_with(Some(false));
        }
        self.ending.abandoned = true;
    }

    /// The leader was reaped.
    pub(super) fn leader_ended(&mut self, usage: Reaped, log: Option<&mut KernelLog>) {
        self.stdin = None;
        if let Some(terminal) = &mut self.terminal {
            terminal.program_ended();
            self.stdout.make_room_for_the_rest();
        }
        // The kernel's word that the pipes have something, if only their end,
        // may still be on its way. No need to wait for it.
        self.stdout.is_ready();
        self.stderr.is_ready();
        // A program that ended well needs no look at what memory was short of.
        let oom_kills = match (&self.cgroup, usage.cause) {
            (None, _) | (_, Cause::Code(0)) => 0,
            (Some(cgroup), cause) => cgroup.oom_kills().unwrap_or_else(|| {
                let unexpected = cause == SIGKILL && self.ending.asked.is_none();
                let told = |log: &mut KernelLog| log.was_oom_killed(self.pid, self.started);
                u32::from(unexpected && log.is_some_and(told))
            }),
        };
        let cause = match (usage.cause, self.ending.asked) {
            (SIGKILL, Some(Asked::Host)) => Cause::Killed,
            (SIGKILL, Some(Asked::Timeout)) => Cause::Timeout,
            (SIGKILL, None) if oom_kills > 0 => Cause::OutOfMemory,
            (cause, _) => cause,
        };
        if self.role.is_looked_after() && self.tree_ended() != Some(true) {
            // Without a cgroup this ends its process group, whose number nobody
            // else can have had in this moment.
            self.kill(Asked::Host);
        }
        self.ending.leader = Some(Leader {
            usage,
            cause,
            oom_kills,
            at: Moment::now(),
        });
    }

    /// The hold is over. Answers whether to look once more after that time,
    /// because a slow reader has yet to make room for what waits in a pipe.
    pub(super) fn hold_expired(&mut self) -> bool {
        if !self.has_ended() {
            return false;
        }
        self.ending.tree_was_waited_for = true;
        if self.waits_for_room(&self.stdout) || self.waits_for_room(&self.stderr) {
            return true;
        }
        self.stdout.cut();
        self.stderr.cut();
        false
    }

    /// Whether there is more of an output, and somebody to make room for it.
    fn waits_for_room(&self, output: &Output) -> bool {
        match &self.terminal {
            Some(terminal) if !terminal.is_read() => output.can_read(),
            _ => output.has_unread(),
        }
    }

    /// Settles how it ended, if nothing can change that any more.
    pub(super) fn settle(&mut self) -> Option<Exit> {
        let outputs_ended = self.stdout.has_ended() && self.stderr.has_ended();
        if self.ending.exit.is_none() && self.has_ended() && outputs_ended {
            let tree_ended = self.proved_end();
            let waits = self.ending.asked.is_some() && tree_ended == Some(false);
            if !waits || self.ending.tree_was_waited_for {
                self.ending.exit = self.exit_with(tree_ended);
            }
        }
        self.ending.exit
    }

    /// How it ended, once it and its descendants are gone or were waited for
    /// long enough. Its outputs may still be read.
    pub(super) fn killed(&mut self) -> Option<Exit> {
        let tree_ended = match (&self.cgroup, self.ending.exit) {
            (None, Some(exit)) => exit.tree_ended,
            (None, None) => None,
            (Some(_), _) => self.proved_end(),
        };
        if tree_ended == Some(false) && !self.ending.tree_was_waited_for {
            return None;
        }
        if let Some(exit) = &mut self.ending.exit {
            exit.tree_ended = tree_ended;
        }
        self.ending.exit.or_else(|| self.exit_with(tree_ended))
    }

    /// Whether no process of its cgroup is left, if that can be known.
    pub(super) fn tree_ended(&self) -> Option<bool> {
        self.cgroup.as_ref().map(Cgroup::is_empty)
    }

    /// The same for an answer. When somebody has asked for its end, the cgroup is
    /// not believed alone: root can have moved a process elsewhere.
    fn proved_end(&self) -> Option<bool> {
        let tree_ended = self.tree_ended();
        let is_proof = tree_ended == Some(true) && self.ending.asked.is_some();
        tree_ended.filter(|_| !is_proof || !Cgroups::may_have_escaped_since(self.started))
    }

    fn exit_with(&self, tree_ended: Option<bool>) -> Option<Exit> {
        let leader = self.ending.leader.as_ref()?;
        Some(Exit {
            cause: leader.cause,
            user_us: leader.usage.user_us,
            system_us: leader.usage.system_us,
            peak_rss_kib: leader.usage.peak_rss_kib,
            wall_us: leader.at.microseconds_since(self.started),
            stdout_bytes: self.stdout.ring().end(),
            stderr_bytes: self.stderr.ring().end(),
            outputs_cut: self.stdout.was_cut() || self.stderr.was_cut(),
            oom_kills: leader.oom_kills,
            tree_ended,
        })
    }
}
