//! Builds a static program for guests in a separate cargo call, because it has
//! another target and another profile than the host's program.

use std::{
    env,
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

const MUSL: &str = "x86_64-unknown-linux-musl";
const GNU: &str = "x86_64-unknown-linux-gnu";

/// The profile of guest programs, for packages: the same as in the `Cargo.toml` of
/// this repository.
const PROFILE: [&str; 7] = [
    "profile.guest.inherits='release'",
    "profile.guest.opt-level='s'",
    "profile.guest.lto='fat'",
    "profile.guest.codegen-units=1",
    "profile.guest.panic='abort'",
    "profile.guest.strip=true",
    "profile.guest.package.sha2.opt-level=3",
];

/// A program, as cargo names it.
pub(crate) struct Program<'a> {
    pub(crate) package: &'a str,
    pub(crate) name: &'a str,
    pub(crate) features: &'a str,
    /// The folders of this repository that it is built from.
    pub(crate) inputs: &'a [&'a str],
}

impl Program<'_> {
    /// Builds it from the sources of this repository. Returns its path.
    pub(crate) fn build(&self, workspace: &Path) -> Result<PathBuf, Box<dyn Error>> {
        for input in self.inputs.iter().chain(&["Cargo.toml", "Cargo.lock"]) {
            let input = workspace.join(input);
            println!("cargo::rerun-if-changed={}", input.display());
        }
        self.build_in(workspace, &[])
    }

    /// Builds it from the source of its package. Returns its path.
    #[allow(dead_code, reason = "only the library is a package")]
    pub(crate) fn build_package(&self, source: &Path) -> Result<PathBuf, Box<dyn Error>> {
        // A copy, because cargo writes a lock file. The configuration of the
        // program that vmcell is built for is found from here upwards.
        let copy = PathBuf::from(env::var("OUT_DIR")?).join(format!("{}-source", self.package));
        copy_tree(source, &copy)?;
        let manifest = copy.join("Cargo.toml");
        let text = fs::read_to_string(&manifest)?;
        fs::write(&manifest, text + "\n[workspace]\n")?;
        self.build_in(&copy, &PROFILE)
    }

    fn build_in(&self, workspace: &Path, settings: &[&str]) -> Result<PathBuf, Box<dyn Error>> {
        let (target, folder) = (target(), target_folder()?);
        let mut cargo = cargo()?;
        cargo
            .env("CARGO_ENCODED_RUSTFLAGS", compiler_flags(&folder)?)
            .current_dir(workspace)
            .args(["build", "--quiet", "--package", self.package])
            .args(["--bin", self.name, "--features", self.features])
            .args(["--profile", "guest", "--target", target, "--target-dir"])
            .arg(&folder);
        for setting in settings {
            cargo.args(["--config", setting]);
        }
        let status = cargo.status()?;
        if !status.success() {
            let name = self.name;
            return Err(format!(
                "the guest program {name} could not be built for {target}: {status}"
            )
            .into());
        }
        Ok(folder.join(target).join("guest").join(self.name))
    }
}

/// Copies a folder, except its lock file: the versions that it names may not be
/// there.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &to)?;
        } else if entry.file_name() != "Cargo.lock" {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Returns musl if its standard library is installed, which makes the smaller
/// program, else glibc.
pub(crate) fn target() -> &'static str {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let folder = Command::new(rustc)
        .args(["--print", "target-libdir", "--target", MUSL])
        .output();
    let folder = folder.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    match folder {
        Ok(folder) if Path::new(folder.trim()).is_dir() => MUSL,
        _ => GNU,
    }
}

/// Returns the build folder of guest programs. All profiles and features of the
/// host's program share it: `OUT_DIR` is `<here>/<profile>/build/<package>/out`.
fn target_folder() -> Result<PathBuf, Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let shared = out.ancestors().nth(4).unwrap_or(&out);
    Ok(shared.join("guest"))
}

/// Returns cargo without the settings of the outer call, which are for the
/// host's program.
pub(crate) fn cargo() -> Result<Command, Box<dyn Error>> {
    let mut cargo = Command::new(env::var("CARGO")?);
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        let is_for_host = name.starts_with("CARGO_") && !KEPT.contains(&&*name);
        if is_for_host || name.starts_with("RUSTC") || name == "RUSTFLAGS" {
            cargo.env_remove(&*name);
        }
    }
    Ok(cargo)
}

/// Leaves out the tables for unwinding, a tenth of the program: it aborts on a
/// panic. What the C runtime refers to stays.
const LINKER_SCRIPT: &str = "\
SECTIONS
{
  /DISCARD/ : { *(EXCLUDE_FILE(*crt*.o) .eh_frame) *(.eh_frame_hdr) }
}
INSERT BEFORE .text;
";

/// Returns the flags for the compiler of guest programs.
fn compiler_flags(folder: &Path) -> Result<String, Box<dyn Error>> {
    let script = folder.join("without-unwind-tables.ld");
    // Only if it differs: another build may be using it.
    if fs::read_to_string(&script).ok().as_deref() != Some(LINKER_SCRIPT) {
        fs::create_dir_all(folder)?;
        fs::write(&script, LINKER_SCRIPT)?;
    }
    let script = script.to_str().ok_or("the build folder is not UTF-8")?;
    // At a fixed address the program needs no relocation, which would touch
    // most of its pages at each boot.
    let flags = [
        "-Ctarget-feature=+crt-static",
        "-Crelocation-model=static",
        "-Clink-arg=-Wl,--no-eh-frame-hdr",
        "-Clink-arg=-T",
        &format!("-Clink-arg={script}"),
    ];
    Ok(flags.join("\x1f"))
}

/// Settings of the outer call that are for both.
const KEPT: [&str; 2] = ["CARGO_HOME", "CARGO_NET_OFFLINE"];
