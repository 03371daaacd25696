//! Rules of what may be opened, executed, connected to and signalled: Landlock.

use std::{error::Error, ffi::OsStr, io, os::fd::AsFd as _};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, AddRuleError, AddRulesError, BitFlags, LandlockStatus,
    PathBeneath, PathFd, PathFdError, RestrictionStatus, Ruleset, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use vmcell_launcher::{Failure, Layer, LayerStatus, Plan};

use crate::{executable::Executable, stage::StageExt as _, sys};

/// The newest version that the rules are written for. An older kernel has fewer.
const NEWEST: ABI = ABI::V9;

/// The first version that knows signals and abstract sockets.
const FIRST_WITH_SCOPES: i32 = 6;

/// Restricts this process.
pub(crate) fn apply(plan: &Plan, executable: Option<&Executable>) -> Result<LayerStatus, Failure> {
    let status = restrict(plan, executable).stage("set up Landlock")?;
    Ok(match (status.ruleset, status.landlock) {
        (
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced,
            LandlockStatus::Available { effective_abi, .. },
        ) => LayerStatus::active(
            Layer::Landlock,
            format!("{ABI_LABEL}{}", effective_abi as i32),
        ),
        _ => LayerStatus::inactive(
            Layer::Landlock,
            "the kernel does not have it, or has it turned off",
        ),
    })
}

const ABI_LABEL: &str = "ABI ";

/// Whether signals and abstract sockets are restricted too.
pub(crate) fn has_scopes(layers: &[LayerStatus]) -> bool {
    let version = layers
        .iter()
        .find(|status| status.layer == Layer::Landlock && status.is_active)
        .and_then(|status| status.detail.strip_prefix(ABI_LABEL)?.parse::<i32>().ok());
    version >= Some(FIRST_WITH_SCOPES)
}

fn restrict(
    plan: &Plan,
    executable: Option<&Executable>,
) -> Result<RestrictionStatus, Box<dyn Error>> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let use_file = AccessFs::ReadFile | AccessFs::WriteFile;
    let write = AccessFs::from_all(NEWEST)
        & !(AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock);
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    for path in &plan.readable {
        allow(&mut rules, path, read)?;
    }
    for path in &plan.writable {
        allow(&mut rules, path, write)?;
    }
    for path in &plan.devices {
        allow(&mut rules, path, use_file | AccessFs::IoctlDev)?;
    }
    let loader = executable.and_then(|executable| executable.loader.as_ref());
    for path in plan.program.iter().chain(loader) {
        allow(&mut rules, path, AccessFs::ReadFile | AccessFs::Execute)?;
    }
    for number in &plan.reopened {
        let file = sys::borrow_descriptor(*number)?;
        match (&mut rules).add_rule(PathBeneath::new(file.as_fd(), use_file)) {
            // A file in memory has no path that a rule could be about, and is not restricted.
            Err(error) if is_nameless(&error) => {}
            added => drop(added?),
        }
    }
    Ok(rules.restrict_self()?)
}

fn is_nameless(error: &RulesetError) -> bool {
    let RulesetError::AddRules(AddRulesError::Fs(AddRuleError::AddRuleCall { source, .. })) = error
    else {
        return false;
    };
    source.raw_os_error() == Some(libc::EBADFD)
}

/// Allows access to a file or to all of a folder, if it exists.
fn allow(
    rules: &mut RulesetCreated,
    path: &OsStr,
    access: BitFlags<AccessFs>,
) -> Result<(), Box<dyn Error>> {
    match PathFd::new(path) {
        Ok(file) => drop(rules.add_rule(PathBeneath::new(file, access))?),
        Err(PathFdError::OpenCall { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
