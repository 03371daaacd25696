//! Decides about a request, without I/O. Sizes are checked before contents are decoded.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;

use super::{
    CallerGrants, NetworkMode, Retention, ToolFile, ToolImage, ToolPolicy, ToolRequest,
    audit::{Audit, Subject},
    guest_path,
    names::{MAX_NAME, is_name, is_variable, shown},
    plan::{Plan, PlannedFile},
    policy::network_policy,
};
use crate::{
    network::{NetworkPolicy, Rule},
    workspace::BASELINE,
};

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is not valid, or over a limit.
    Invalid(String),
    /// The policy does not allow it.
    Denied(String),
}

/// The permissions of files whose request does not say.
const DEFAULT_MODE: u32 = 0o644;

/// The name of a snapshot whose request does not say.
const DEFAULT_SNAPSHOT: &str = "tool";

/// Decides about a request, and records each decision.
pub(super) fn validate(
    request: ToolRequest,
    policy: &ToolPolicy,
    audit: &mut Audit,
) -> Result<Plan, Refusal> {
    let caller = audit.caller.clone();
    let Some(grants) = policy.caller_grants(&caller) else {
        let reason = "the policy does not have this caller";
        audit.deny(Subject::Caller, &caller, reason);
        return Err(Refusal::Denied(format!("{reason}: {}", shown(&caller))));
    };
    audit.allow(Subject::Caller, &caller, "the policy has it");
    let mut validation = Validation {
        policy,
        grants,
        audit,
    };
    validation.plan(request)
}

struct Validation<'a> {
    policy: &'a ToolPolicy,
    grants: CallerGrants,
    audit: &'a mut Audit,
}

impl Validation<'_> {
    fn plan(&mut self, request: ToolRequest) -> Result<Plan, Refusal> {
        let (image_name, image, programs) = self.image(&request)?;
        let within_limits = self.within_limits(&request, &programs);
        let limits = match within_limits {
            Ok(limits) => limits,
            Err(reason) => {
                self.audit.deny(Subject::Limits, "", &reason);
                return Err(Refusal::Invalid(reason));
            }
        };
        self.audit
            .allow(Subject::Limits, "", "the request is valid and within them");
        let (network, network_grants) = self.network(&request)?;
        let secrets = self.secrets(&request)?;
        let (retention, ttl) = self.state(&request)?;
        let overhead = Duration::from_secs(self.policy.limits.overhead_seconds);
        let deadline = limits.timeout.saturating_add(overhead);
        let state = request.state;
        Ok(Plan {
            memory_mib: image.memory_mib.unwrap_or(self.policy.limits.memory_mib),
            image_name,
            image,
            argv: limits.argv,
            files: limits.files,
            stdin: request.stdin.map(Bytes::from),
            working_directory: limits.working_directory,
            timeout: limits.timeout,
            deadline: match (retention, ttl) {
                (Retention::Destroy, Some(ttl)) => deadline.min(ttl),
                _ => deadline,
            },
            max_output: limits.max_output,
            network,
            network_grants,
            secrets,
            outputs: request.outputs,
            retention,
            ttl,
            snapshot_name: state.name.unwrap_or_else(|| DEFAULT_SNAPSHOT.to_owned()),
        })
    }

    fn invalid<T>(&mut self, subject: Subject, name: &str, reason: String) -> Result<T, Refusal> {
        self.audit.deny(subject, name, &reason);
        Err(Refusal::Invalid(reason))
    }

    fn denied<T>(&mut self, subject: Subject, name: &str, reason: String) -> Result<T, Refusal> {
        self.audit.deny(subject, name, &reason);
        Err(Refusal::Denied(reason))
    }

    fn image(
        &mut self,
        request: &ToolRequest,
    ) -> Result<(String, ToolImage, BTreeMap<String, String>), Refusal> {
        let (name, programs) = match (&request.language, &request.image) {
            (Some(_), Some(_)) | (None, None) => {
                let reason = "name a language or an image, and not both";
                return self.invalid(Subject::Image, "", reason.to_owned());
            }
            (Some(wanted), None) | (None, Some(wanted)) if !is_name(wanted) => {
                let reason = format!(
                    "{} is not a name: images and languages are named as in the policy, and not \
                     by a path",
                    shown(wanted)
                );
                return self.invalid(Subject::Image, wanted, reason);
            }
            (Some(language), None) => match self.policy.languages.get(language) {
                Some(found) => (found.image.clone(), found.programs.clone()),
                None => {
                    let reason = format!("there is no language {}", shown(language));
                    return self.denied(Subject::Image, language, reason);
                }
            },
            (None, Some(image)) => (image.clone(), BTreeMap::new()),
        };
        let is_granted = |images: &BTreeSet<String>| images.contains(&name);
        let is_granted = self.grants.images.as_ref().is_none_or(is_granted);
        match self.policy.images.get(&name).cloned() {
            Some(image) if is_granted => {
                let reason = "the policy has it, and the caller may use it";
                self.audit.allow(Subject::Image, &name, reason);
                Ok((name, image, programs))
            }
            Some(_) => {
                let reason = format!("the caller may not use the image {}", shown(&name));
                self.denied(Subject::Image, &name, reason)
            }
            None => {
                let reason = format!("there is no image {}", shown(&name));
                self.denied(Subject::Image, &name, reason)
            }
        }
    }

    /// Checks all that has a limit. The error says what is over one.
    fn within_limits(
        &self,
        request: &ToolRequest,
        programs: &BTreeMap<String, String>,
    ) -> Result<Limited, String> {
        let limits = &self.policy.limits;
        let argv = self.argv(&request.command, programs)?;
        let files = self.files(&request.files)?;
        let stdin = request.stdin.as_ref().map_or(0, String::len);
        at_most("bytes of standard input", stdin, limits.stdin_bytes)?;
        let outputs = &request.outputs;
        at_most("output files", outputs.len(), limits.outputs)?;
        let mut seen = BTreeSet::new();
        for path in outputs {
            guest_path::check(path, &limits.roots)?;
            if !seen.insert(path) {
                return Err(format!("the output {} is there twice", shown(path)));
            }
        }
        let working_directory = match &request.working_directory {
            Some(path) => {
                guest_path::check_folder(path, &limits.roots)?;
                path.clone()
            }
            None => limits.roots.first().cloned().unwrap_or_default(),
        };
        let timeout = request.timeout_seconds;
        let timeout = timeout.unwrap_or(limits.default_timeout_seconds);
        if timeout == 0 {
            return Err("a timeout of zero seconds lets nothing run".to_owned());
        }
        at_most("seconds of run time", timeout, limits.timeout_seconds)?;
        let max_output = request.max_output_bytes;
        let max_output = max_output.unwrap_or(limits.default_output_bytes);
        at_most("bytes of output", max_output, limits.output_bytes)?;
        Ok(Limited {
            argv,
            files,
            working_directory,
            timeout: Duration::from_secs(timeout),
            max_output: usize::try_from(max_output).unwrap_or(usize::MAX),
        })
    }

    fn argv(
        &self,
        command: &[String],
        programs: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, String> {
        let limits = &self.policy.limits;
        let (Some(program), arguments) = (command.first(), command.get(1..).unwrap_or_default())
        else {
            return Err("the command is empty: name a program".to_owned());
        };
        if program.is_empty() {
            return Err("the command is empty: name a program".to_owned());
        }
        at_most("arguments", command.len(), limits.arguments)?;
        let bytes = command.iter().map(String::len).sum::<usize>();
        at_most("bytes of arguments", bytes, limits.argument_bytes)?;
        if command.iter().any(|argument| argument.contains('\0')) {
            return Err("an argument has a zero byte".to_owned());
        }
        let program = programs.get(program).unwrap_or(program).clone();
        Ok([&[program], arguments].concat())
    }

    fn files(&self, files: &[ToolFile]) -> Result<Vec<PlannedFile>, String> {
        let limits = &self.policy.limits;
        at_most("files", files.len(), limits.files)?;
        let mut paths = BTreeSet::new();
        let mut total: u64 = 0;
        for file in files {
            guest_path::check(&file.path, &limits.roots)?;
            if !paths.insert(file.path.as_str()) {
                return Err(format!("the file {} is there twice", shown(&file.path)));
            }
            let length = content_length(file)?;
            at_most("bytes in a file", length, limits.file_bytes)?;
            total = total.saturating_add(length);
        }
        at_most("bytes in all files", total, limits.total_bytes)?;
        for path in &paths {
            let folders = path.match_indices('/').skip(1);
            let mut folders = folders.filter_map(|(at, _)| path.get(..at));
            if let Some(folder) = folders.find(|folder| paths.contains(folder)) {
                return Err(format!(
                    "{} is a file and the folder of another one",
                    shown(folder)
                ));
            }
        }
        files.iter().map(planned_file).collect()
    }

    fn network(&mut self, request: &ToolRequest) -> Result<(NetworkPolicy, Vec<String>), Refusal> {
        let wanted = &request.network;
        let is_empty = wanted.grants.is_empty() && wanted.allow.is_empty();
        let limit = self.policy.limits.destinations;
        let count = wanted.grants.len().max(wanted.allow.len());
        let fault = match wanted.mode {
            NetworkMode::None if !is_empty => Some("with the mode `none` nothing can be reached"),
            NetworkMode::Grants if is_empty => {
                Some("name what is to be reached, or the mode `none`")
            }
            _ => None,
        };
        if let Some(fault) = fault {
            return self.invalid(Subject::Network, "", fault.to_owned());
        }
        if let Err(reason) = at_most("destinations", count, limit) {
            return self.invalid(Subject::Network, "", reason);
        }
        let mut rules = Vec::new();
        let mut used = BTreeSet::new();
        for name in &wanted.grants {
            // Whether there is one is for those who may use it.
            if !self.grants.network.contains(name) {
                let reason = format!("the caller has no network grant {}", shown(name));
                return self.denied(Subject::Network, name, reason);
            }
            self.audit
                .allow(Subject::Network, name, "the caller has this grant");
            rules.extend(self.policy.rules(name));
            used.insert(name.clone());
        }
        for destination in &wanted.allow {
            let (host, port) = (&destination.host, destination.port);
            let text = match host.contains(':') {
                true => format!("[{host}]:{port}"),
                false => format!("{host}:{port}"),
            };
            let is_single = !host.contains(['*', '/', '[', ',']);
            let Some(rule) = text.parse::<Rule>().ok().filter(|_| is_single && port > 0) else {
                let reason = format!("{} is not a host and a port", shown(&text));
                return self.invalid(Subject::Network, &text, reason);
            };
            let covers = |name: &&String| self.policy.rules(name).any(|it| it.covers(host, port));
            let Some(grant) = self.grants.network.iter().find(covers).cloned() else {
                let reason = format!("no network grant of the caller has {}", shown(&text));
                return self.denied(Subject::Network, &text, reason);
            };
            let reason = format!("the grant {grant} of the caller has it");
            self.audit.allow(Subject::Network, &text, &reason);
            rules.push(rule);
            used.insert(grant);
        }
        Ok((network_policy(rules), used.into_iter().collect()))
    }

    fn secrets(&mut self, request: &ToolRequest) -> Result<Vec<(String, String)>, Refusal> {
        let count = request.secrets.len();
        if let Err(reason) = at_most("secrets", count, self.policy.limits.secrets) {
            return self.invalid(Subject::Secret, "", reason);
        }
        let mut secrets = Vec::new();
        for (variable, reference) in &request.secrets {
            if !is_variable(variable) {
                let reason = format!("{} cannot name a variable", shown(variable));
                return self.invalid(Subject::Secret, "", reason);
            }
            // It is not repeated, because it may be a value.
            if crate::secret::checked_name(reference.name.clone()).is_err() {
                let reason = format!(
                    "the reference of {variable} is not the name of a secret: secrets are \
                     named, and their values are not in requests"
                );
                return self.invalid(Subject::Secret, variable, reason);
            }
            if !self.grants.secrets.contains(&reference.name) {
                let reason = format!("the caller has no secret for the reference of {variable}");
                return self.denied(Subject::Secret, variable, reason);
            }
            self.audit.allow(
                Subject::Secret,
                &reference.name,
                "the caller has this grant",
            );
            secrets.push((variable.clone(), reference.name.clone()));
        }
        Ok(secrets)
    }

    fn state(&mut self, request: &ToolRequest) -> Result<(Retention, Option<Duration>), Refusal> {
        let (state, policy) = (&request.state, &self.policy.state);
        let (retention, max) = (state.retention, policy.max_ttl_seconds);
        let (is_permitted, with_secrets) =
            (policy.retention.contains(&retention), policy.with_secrets);
        let fault = match (state.ttl_seconds, &state.name) {
            (None, _) if retention.needs_ttl() => {
                Some(format!("what is kept as {retention} needs `ttl_seconds`"))
            }
            (Some(0), _) => Some("a TTL of zero seconds keeps nothing: use `destroy`".to_owned()),
            (Some(ttl), _) if ttl > max => Some(format!("a TTL of more than {max} seconds")),
            (_, Some(_)) if retention != Retention::Snapshot => {
                Some("only a snapshot has a name".to_owned())
            }
            (_, Some(name)) if !is_name(name) || name.contains('+') || name == BASELINE => {
                Some(format!(
                    "{} cannot be the name of a snapshot: use 1 to {MAX_NAME} letters, digits and \
                     hyphens",
                    shown(name)
                ))
            }
            _ => None,
        };
        if let Some(fault) = fault {
            return self.invalid(Subject::Retention, retention.name(), fault);
        }
        if !is_permitted {
            let reason = format!("the policy does not allow the retention {retention}");
            return self.denied(Subject::Retention, retention.name(), reason);
        }
        if retention != Retention::Destroy && !request.secrets.is_empty() && !with_secrets {
            let reason = "a sandbox that has secrets may not be kept: use `destroy`".to_owned();
            return self.denied(Subject::Retention, retention.name(), reason);
        }
        let name = retention.name();
        self.audit
            .allow(Subject::Retention, name, "the policy allows it");
        // Nothing stays for ever.
        let ttl = match (state.ttl_seconds, retention) {
            (Some(ttl), _) => Some(ttl),
            (None, Retention::Stop) => Some(max),
            (None, _) => None,
        };
        Ok((retention, ttl.map(Duration::from_secs)))
    }
}

/// The parts of a request that are within their limits.
struct Limited {
    argv: Vec<String>,
    files: Vec<PlannedFile>,
    working_directory: String,
    timeout: Duration,
    max_output: usize,
}

fn at_most(what: &str, count: impl TryInto<u64>, limit: u64) -> Result<(), String> {
    let count = count.try_into().unwrap_or(u64::MAX);
    match count <= limit {
        true => Ok(()),
        false => Err(format!(
            "{count} {what} are more than the {limit} of the policy"
        )),
    }
}

/// Returns the length of the content of a file, which is not decoded.
fn content_length(file: &ToolFile) -> Result<u64, String> {
    match (&file.content, &file.content_base64) {
        (Some(text), None) => Ok(text.len() as u64),
        (None, Some(base64)) => Ok(base64.len() as u64 / 4 * 3),
        _ => Err(format!(
            "the file {} needs `content` or `content_base64`, and not both",
            shown(&file.path)
        )),
    }
}

fn planned_file(file: &ToolFile) -> Result<PlannedFile, String> {
    let content = match (&file.content, &file.content_base64) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, base64) => {
            let decoded = STANDARD.decode(base64.as_deref().unwrap_or_default());
            decoded.map_err(|_| format!("the file {} is not in Base64", shown(&file.path)))?
        }
    };
    let mode = match &file.mode {
        None => Some(DEFAULT_MODE),
        Some(digits) if (3..=4).contains(&digits.len()) => {
            let is_octal = digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
            let mode = u32::from_str_radix(digits, 8).ok();
            mode.filter(|mode| is_octal && *mode <= 0o777)
        }
        Some(_) => None,
    };
    let wrong_mode = || {
        format!(
            "the file {} needs a mode of three octal digits, such as 755",
            shown(&file.path)
        )
    };
    Ok(PlannedFile {
        path: file.path.clone(),
        content: content.into(),
        mode: mode.ok_or_else(wrong_mode)?,
    })
}
