#!/usr/bin/env python3
"""Records what real programs write to a terminal: see README.md.

Each session is a command and the keys that are typed into it. A key is typed
when the program has printed nothing for a while. The recording ends after the
last key, so that full-screen programs are still on the screen.
"""

import fcntl, os, pty, select, signal, struct, subprocess, sys, tempfile, termios, time

COLUMNS, ROWS = 80, 24
SILENCE = 0.4

PROGRESS = r'''
import sys, time
out = sys.stdout
for i in range(0, 101, 2):
    out.write(f"\rFetching  [{'#' * (i // 4):<25}] {i:3}%"); out.flush()
out.write("\r\x1b[KFetched 42 files\n")
out.write("\n\x1b7\x1b[1;23r\x1b8\x1b[1A")
for i in range(1, 61):
    out.write(f"Unpacking package-{i} (1.{i}-2) ...\n")
    out.write(f"\x1b7\x1b[24;0f\x1b[42m\x1b[30mProgress: [{i * 100 // 60:3}%]\x1b[49m\x1b[39m ")
    out.write(f"[{'#' * (i * 50 // 60):.<50}]\x1b8"); out.flush()
out.write("\x1b7\x1b[1;24r\x1b8\x1b[1A\x1b[JDone.\n")
'''

COLOURS = r'''
for i in range(256):
    print(f"\x1b[48;5;{i}m{i:4}\x1b[0m", end="\n" if i % 16 == 15 else "")
for row in range(4):
    print("".join(f"\x1b[38;2;{255 - 3 * x};{60 * row};{3 * x}m\x1b[48:2::{x}:{x * 2}:{60 * row}m#" for x in range(78)) + "\x1b[0m")
print("\x1b[1mbold\x1b[0m \x1b[2mdim\x1b[0m \x1b[3mitalic\x1b[0m \x1b[4munder\x1b[0m \x1b[4:3mcurly\x1b[0m "
      "\x1b[7mreverse\x1b[0m \x1b[8mhidden\x1b[0m \x1b[9mstruck\x1b[0m \x1b[91mbright\x1b[39m \x1b[1;31;44mboth\x1b[0m")
'''

UNICODE = r'''
print("wide: 漢字かな交じり文 한국어 ｆｕｌｌ end")
print("combining: e\u0301 a\u0308\u0323 n\u0303 o\u0302\u0301 end")
print("accents: žluťoučký kůň, Ελληνικά, Русский, ñandú")
print("box: ┌──┬──┐ │ab│cd│ └──┴──┘ ▁▂▃▄▅▆▇█ ░▒▓")
print("x" * 79 + "漢 wraps")
print("漢" * 45)
print("abc漢字def\x1b[6D!\x1b[0m")
print("math: ∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, α ∧ ¬β")
print("right to left: שלום")
print("tabs:\ta\tbc\tdef\tend")
'''

SOURCE = "".join(
    f'''/* Function number {n}: nothing much. */
static int function_{n}(const char *name, int value)
{{
\tif (value > {n * 7})
\t\treturn printf("%s: %d\\n", name, value + {n});
\tfor (int i = 0; i < {n}; i++)
\t\tvalue += i * 0x{n:x};
\treturn value; // the end of {n}
}}

'''
    for n in range(1, 80)
)

TEXT = "".join(f"{n:4}  {'the quick brown fox jumps over the lazy dog ' * (n % 4)}\n" for n in range(1, 400))

FILES = {
    "progress.py": PROGRESS,
    "colours.py": COLOURS,
    "unicode.py": UNICODE,
    "source.c": SOURCE,
    "text.txt": TEXT,
    "script.py": "def add(a, b):\n    c = a + b\n    return c\n\n\nprint(add(1, 2))\n",
    "tmux.conf": "set -g status-right ''\nset -g status-left ''\nset -g default-terminal screen-256color\n"
                 "set -g default-command 'bash --noprofile --norc'\n",
}

UP = "\x1b[A"

BASH = ["bash", "--noprofile", "--norc"]
ISOLATED = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "sh", "-c"]

SESSIONS = {
    "bash": (BASH, [
        "echo hello\r", "ls --color=always\r", "echo wrong\x1b[D\x1b[D\x1b[DXYZ\x01true && \r",
        "for i in $(seq 1 120); do echo line $i; done\r", "sleep 100\r", "\x03", "cat &\r", "jobs\r",
        "printf '\\033]0;a title\\007'\r", "ech\t 'a long command line that is longer than the terminal is wide, so it wraps around the edge'\r",
        "\x12hello", "\x07", "unfinished"]),
    "clear": (BASH, ["seq 1 50\r", "\x0c", "echo after\r", "clear\r", "echo again\r"]),
    "less": (["less", "text.txt"], [" ", " ", "/brown fox\r", "n", "n", "b", "G", "k", "k", "100g"]),
    "less-quit": (BASH, ["seq 1 10\r", "less text.txt\r", " ", " ", "q", "echo back\r"]),
    "vim": (["vim", "-u", "NONE", "-N", "-i", "NONE", "--cmd", "syntax on | set nu hlsearch ruler ttyfast", "source.c"],
            ["\x06", "\x06", "/value\r", "n", "ihello world \x1b", "dd", "yy5p", "u", "\x02", ":split\r", "\x17j", "G",
             "\x15", "\x15", "100G", "zt", "10\x05", "10\x19", ":set list\r", "5x", "V3j"]),
    "vim-quit": (BASH, ["seq 1 10\r", "vim -u NONE -N -i NONE source.c\r", "\x06", "ohi\x1b", ":q!\r", "echo back\r"]),
    "vim-scroll": (["vim", "-u", "NONE", "-N", "-i", "NONE", "--cmd", "syntax on | set nu", "source.c"],
                   ["\x04"] * 12 + ["\x15"] * 8 + ["\x05"] * 6),
    "top": (ISOLATED + ["hostname demo; sleep 100 & cat & exec top -d 0.3"], ["z", "x"]),
    "htop": (ISOLATED + ["hostname demo; sleep 100 & cat & exec htop -d 3"], ["t"]),
    "python": (["python3", "-q", "-I"], [
        "1 + 1\r", "def f(x):\r", "    return 1 / x\r", "\r", "f(0)\r", "'é漢'\r", "import this\r",
        "help\r", UP, "\x01#\r", "print('a' * 100)\r", "[i ** i for i in range(30)]\r", "for i in"]),
    "pdb": (["python3", "-m", "pdb", "script.py"], ["n\r", "n\r", "l\r", "p 1 + 1\r", "where\r", "b 3\r"]),
    "progress": (["python3", "progress.py"], []),
    "colours": (["python3", "colours.py"], []),
    "unicode": (["python3", "unicode.py"], []),
    "listing": (["ls", "-lR", "--color=always", "--time-style=long-iso", "/usr/include/linux"], []),
    "tmux": (["tmux", "-L", "recording", "-f", "tmux.conf"], [
        "seq 1 40\r", "\x02%", "echo right; ls -l --color\r", "\x02\"", "vim -u NONE -N -i NONE source.c\r", "\x06", "\x06",
        "\x02o", "seq 1 500\r", "\x02[", "\x1b[5~", "\x1b[5~", "q"]),
}


def record(command, keys, folder):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        env = {"PATH": os.environ["PATH"], "HOME": folder, "TERM": "xterm-256color", "LANG": "C.UTF-8",
               "PS1": "$ ", "SHELL": "/bin/sh", "PYTHON_BASIC_REPL": "1", "LS_COLORS": "di=01;34:ln=01;36:ex=01;32:*.vim=38;5;208:*.h=33"}
        os.execvpe(command[0], command, env)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    os.kill(pid, signal.SIGWINCH)
    written = bytearray()

    def read_until_silent(timeout):
        # A program that is never silent is read for a second.
        end = time.monotonic() + max(timeout, 1)
        while time.monotonic() < end and select.select([terminal], [], [], timeout)[0]:
            try:
                written.extend(os.read(terminal, 65536))
            except OSError:
                return

    read_until_silent(1.5)
    for key in keys:
        os.write(terminal, key.encode())
        read_until_silent(SILENCE)
    os.kill(pid, signal.SIGKILL)
    os.close(terminal)
    os.waitpid(pid, 0)
    return bytes(written)


def reference(path):
    """Returns the screen that tmux, an independent implementation, shows for a recording."""
    tmux = ["tmux", "-L", f"reference-{os.getpid()}", "-f", "/dev/null"]
    show = f"stty raw -echo; cat {path}; exec sleep 1000"
    subprocess.run(
        tmux + ["start-server", ";", "set", "-g", "status", "off", ";", "set", "-g", "default-terminal", "tmux-256color", ";",
                "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), show],
        check=True, env={**os.environ, "LANG": "C.UTF-8"})

    def tmux_output(*arguments):
        return subprocess.run(tmux + list(arguments), check=True, capture_output=True, text=True).stdout

    before, now = None, ""
    while now != before or not now.strip():
        time.sleep(SILENCE)
        before, now = now, tmux_output("capture-pane", "-p")
    state = tmux_output("display", "-p", "#{cursor_y} #{cursor_x} #{cursor_flag} #{alternate_on}").split()
    subprocess.run(tmux + ["kill-server"], check=True)
    row, column = state[:2]
    head = [f"cursor {row} {column} {'visible' if state[2] == '1' else 'hidden'}",
            "alternate screen" if state[3] == "1" else "main screen"]
    lines = [line.rstrip() for line in now.split("\n")]
    return "\n".join(head + lines).rstrip("\n") + "\n"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    wanted = sys.argv[1:] or SESSIONS
    for name in wanted:
        with tempfile.TemporaryDirectory() as folder:
            for file, content in FILES.items():
                with open(os.path.join(folder, file), "w") as out:
                    out.write(content)
            # The name of the folder is random: replace it by a fixed one.
            written = record(*SESSIONS[name], folder).replace(folder.encode(), b"/home/demo")
        if name == "tmux":
            subprocess.run(["tmux", "-L", "recording", "kill-server"], check=False)
        path = os.path.join(here, name)
        with open(path + ".raw", "wb") as out:
            out.write(written)
        with open(path + ".txt", "w") as out:
            out.write(reference(path + ".raw"))
        print(f"{name}: {len(written)} bytes")


main()
