//! Known programs, by their names in the kernel (`comm`): at most 15 bytes, without
//! directory.

const SHELLS: &[&str] = &[
    "ash", "bash", "busybox", "csh", "dash", "elvish", "fish", "ksh", "ksh93", "mksh", "nu",
    "oksh", "pwsh", "rbash", "sh", "tcsh", "yash", "zsh",
];

const EDITORS: &[&str] = &[
    "ee",
    "emacs",
    "emacs-nox",
    "emacsclient",
    "helix",
    "hx",
    "jed",
    "joe",
    "kak",
    "mcedit",
    "mg",
    "micro",
    "nano",
    "ne",
    "nvi",
    "nvim",
    "pico",
    "rnano",
    "rview",
    "rvim",
    "vi",
    "view",
    "vile",
    "vim",
    "vim.basic",
    "vim.gtk3",
    "vim.nox",
    "vim.tiny",
    "vimdiff",
    "zile",
];

/// Programs whose full-screen children are editors, unless they are pagers.
const EDITOR_LAUNCHERS: &[&str] = &[
    "crontab",
    "git",
    "hg",
    "select-editor",
    "sudoedit",
    "svn",
    "vigr",
    "vipw",
    "visudo",
];

const PAGERS: &[&str] = &["less", "man", "more", "most", "pager", "pg"];

/// Programs that pass the terminal through to a program elsewhere. Their terminal
/// modes say nothing about that program.
const PROXIES: &[&str] = &[
    "abduco",
    "adb",
    "autossh",
    "docker",
    "doas",
    "dtach",
    "incus",
    "kubectl",
    "limactl",
    "login",
    "lxc",
    "machinectl",
    "minicom",
    "mosh-client",
    "nerdctl",
    "picocom",
    "podman",
    "runuser",
    "screen",
    "script",
    "ssh",
    "su",
    "sudo",
    "systemd-run",
    "telnet",
    "tio",
    "tmux: client",
    "vagrant",
    "virsh",
    "vmcell",
    "zellij",
];

/// Programs that always use the whole screen, with shells in it.
const MULTIPLEXERS: &[&str] = &["abduco", "dtach", "screen", "tmux: client", "zellij"];

/// Interpreters and their prompts. After a `*`, only the end of the row must
/// match.
const REPLS: &[(&[&str], &[&str])] = &[
    (
        &["node", "nodejs", "MainThread", "deno", "bun"],
        &["> ", "... ", "| "],
    ),
    (&["sqlite3", "sqlite"], &["sqlite> ", "   ...> "]),
    (
        &["psql"],
        &[
            "*=# ", "*=> ", "*-# ", "*-> ", "*(# ", "*(> ", "*'# ", "*'> ",
        ],
    ),
    (&["mysql", "mariadb"], &["mysql> ", "*]> ", "    -> "]),
    (
        &["gdb", "gdb-multiarch", "rust-gdb", "cgdb"],
        &["(gdb) ", ">"],
    ),
    (&["lldb", "rust-lldb"], &["(lldb) "]),
    (&["dlv"], &["(dlv) "]),
    (
        &["irb", "ruby", "pry", "rails"],
        &["*> ", "*>> ", "*? ", "*\" ", "** "],
    ),
    (&["R", "Rscript"], &["> ", "+ "]),
    (&["ghc", "ghci", "stack", "cabal"], &["*> ", "*| "]),
    (
        &["lua", "lua5.1", "lua5.3", "lua5.4", "luajit"],
        &["> ", ">> "],
    ),
    (&["php"], &["php > ", "php { ", "php ( "]),
    (&["redis-cli", "valkey-cli", "mongosh", "mongo"], &["*> "]),
    (&["julia"], &["julia> ", "pkg> ", "help?> ", "shell> "]),
    (&["java", "jshell", "scala", "clj", "clojure"], &["*> "]),
    (&["beam.smp", "iex", "erl"], &["*> "]),
    (
        &["ftp", "sftp", "lftp", "telnet", "nslookup", "bluetoothctl"],
        &["*> ", "*]# "],
    ),
    (&["octave", "octave-cli", "gnuplot", "maxima"], &["*> "]),
    (&["ocaml", "utop"], &["# ", "*# "]),
    (&["swipl", "gprolog"], &["*?- "]),
    (
        &["parted", "fdisk", "gdisk"],
        &["(parted) ", "*(m for help): ", "*(? for help): "],
    ),
];

pub(super) fn is_shell(command: &str) -> bool {
    SHELLS.contains(&command)
}

pub(super) fn is_editor(command: &str) -> bool {
    EDITORS.contains(&command)
}

pub(super) fn launches_editor(command: &str) -> bool {
    EDITOR_LAUNCHERS.contains(&command)
}

pub(super) fn is_pager(command: &str) -> bool {
    PAGERS.contains(&command)
}

pub(super) fn is_proxy(command: &str) -> bool {
    PROXIES.contains(&command)
}

pub(super) fn is_multiplexer(command: &str) -> bool {
    MULTIPLEXERS.contains(&command)
}

/// Returns the prompts of an interpreter. Empty for other programs.
pub(super) fn repl_prompts(command: &str) -> impl Iterator<Item = &'static str> {
    REPLS
        .iter()
        .filter(move |(commands, _)| commands.contains(&command))
        .flat_map(|(_, prompts)| prompts.iter().copied())
}
